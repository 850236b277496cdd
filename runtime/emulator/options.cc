#include "runtime/emulator/options.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "runtime/emulator/device_limits.h"

namespace pagejit_emulator {
namespace {

constexpr int kMaxResident = 64;  // each holds one shared memory arena and a stack per thread

void complain(const char* name, const char* value, const std::string& legal,
              std::string* complaint) {
  if (!complaint->empty()) *complaint += "; ";
  *complaint += std::string(name) + "=" + value + ": must be " + legal;
}

void read_choice(const char* name, std::initializer_list<const char*> words, int* value,
                 std::string* complaint) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  std::string legal;
  int index = 0;
  for (const char* word : words) {
    if (std::strcmp(text, word) == 0) {
      *value = index;
      return;
    }
    legal += legal.empty() ? word : std::string(", ") + word;
    ++index;
  }
  complain(name, text, "one of " + legal, complaint);
}

// A number in [low, high]; the target keeps its value where the text is none.
template <class T>
void read_number(const char* name, double low, double high, const std::string& legal, T* value,
                 std::string* complaint) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (*end != '\0' || !(number >= low && number <= high)) {
    return complain(name, text, legal, complaint);
  }
  *value = static_cast<T>(number);
}

}  // namespace

Options default_options() {
  Options options;
  options.values = {.struct_size = sizeof(PagejitEmulatorOptions),
                    .order = kPagejitEmulatorFifo,
                    .completion = kPagejitEmulatorLate,
                    .seed = 1,
                    .resident = 1,
                    .sm = 90,
                    .watchdog_s = 60};
  return options;
}

Options options_from_environment(std::string* complaint) {
  Options options = default_options();
  PagejitEmulatorOptions& values = options.values;
  read_choice("PAGEJIT_EMULATOR_ORDER", {"fifo", "lifo", "random"}, &values.order, complaint);
  read_choice("PAGEJIT_EMULATOR_COMPLETION", {"late", "early", "random"}, &values.completion,
              complaint);
  // 2^53: what a double holds exactly.
  read_number("PAGEJIT_EMULATOR_SEED", 0, 9007199254740992.0, "a whole number", &values.seed,
              complaint);
  read_number("PAGEJIT_EMULATOR_RESIDENT", 1, kMaxResident, "in [1, 64]", &values.resident,
              complaint);
  read_number("PAGEJIT_EMULATOR_WATCHDOG_S", 0, 1e6, "seconds in [0, 1000000]", &values.watchdog_s,
              complaint);
  int sm = values.sm;
  read_number("PAGEJIT_EMULATOR_SM", 0, 1000, "a compute capability such as 90", &sm, complaint);
  if (find_device_limits(sm) != nullptr) {
    values.sm = sm;
  } else {
    complain("PAGEJIT_EMULATOR_SM", std::getenv("PAGEJIT_EMULATOR_SM"),
             known_compute_capabilities(), complaint);
  }
  if (const char* path = std::getenv("PAGEJIT_EMULATOR_REPORT")) options.report_path = path;
  return options;
}

bool valid(const PagejitEmulatorOptions& options) {
  return options.order >= kPagejitEmulatorFifo && options.order <= kPagejitEmulatorRandom &&
         options.completion >= kPagejitEmulatorLate &&
         options.completion <= kPagejitEmulatorRandomCompletion && options.resident >= 1 &&
         options.resident <= kMaxResident && find_device_limits(options.sm) != nullptr &&
         options.watchdog_s >= 0;
}

}  // namespace pagejit_emulator
