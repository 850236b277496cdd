// Options of the emulator and their reading from the environment. Thread-safety: pure functions but
// for getenv.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "runtime/emulator/emulator.h"

namespace pagejit_emulator {

struct Options {
  PagejitEmulatorOptions values;
  std::string report_path;  // "" = nowhere, "stderr", else a file to append to
};

Options default_options();

// The defaults, overridden by PAGEJIT_EMULATOR_*. A malformed value is left out and named in
// *complaint.
Options options_from_environment(std::string* complaint);

// Whether every value is legal.
bool valid(const PagejitEmulatorOptions& options);

// Copies the fields that both sides know: `to` keeps its own struct_size. For options and counters.
template <class T>
void copy_fields(const T& from, size_t from_size, T* to, size_t to_size) {
  const size_t begin = sizeof(from.struct_size);
  const size_t end = std::min(from_size, to_size);
  if (end <= begin) return;
  std::memcpy(reinterpret_cast<char*>(to) + begin, reinterpret_cast<const char*>(&from) + begin,
              end - begin);
}

}  // namespace pagejit_emulator
