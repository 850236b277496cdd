// The CUDA driver, its GPUs and the emulator.
#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include "runtime/driver/driver.h"
#include "runtime/logger.h"
#include "runtime/target_ladder.h"
#include "tools/cli/doctor_checks.h"

namespace pagejit::cli {
namespace {

std::string version_of(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

// The file that the driver was really loaded from.
std::string file_of(const Driver& driver) {
  Dl_info info{};
  void* symbol = driver.symbol("cuInit");
  return symbol != nullptr && dladdr(symbol, &info) != 0 && info.dli_fname != nullptr
             ? std::string(info.dli_fname)
             : driver.path();
}

// 0 where the driver does not say.
int sm_of(const Driver& driver, int ordinal, std::string* name) {
  CUdevice device = 0;
  int major = 0, minor = 0;
  char text[256] = "GPU";  // longer than the name of any
  if (driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS) return 0;
  if (driver.cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS) *name = text;
  if (driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
          CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return major * 10 + minor;
}

void examine_gpu(int ordinal, const std::string& name, int sm, const FoundNvrtc& nvrtc,
                 DoctorReport& report) {
  const std::string topic = "GPU " + std::to_string(ordinal);
  nlohmann::json values = {{"name", name}, {"sm", sm}};
  const std::string what =
      name + ", compute capability " + std::to_string(sm / 10) + "." + std::to_string(sm % 10);
  const Result<std::vector<Target>> ladder = target_ladder(sm);
  if (!ladder) {
    report.problem(topic, what + ": " + ladder.status().message(), "use another GPU", values);
    return;
  }
  values["best_target"] = ladder->front().to_string();
  const auto first = std::find_if(ladder->begin(), ladder->end(), [&](const Target& target) {
    return std::find(nvrtc.targets.begin(), nvrtc.targets.end(), target) != nvrtc.targets.end();
  });
  if (!nvrtc.is_usable) {
    report.ok(topic, what + "; best served by " + ladder->front().to_string(), values);
  } else if (first == ladder->end()) {
    report.problem(topic, what + ": the NVRTC that was found compiles for none of its targets",
                   "install a newer NVRTC, or use stored kernels", values);
  } else {
    values["target"] = first->to_string();
    std::string text = what + ": kernels are compiled for " + first->to_string();
    if (*first != ladder->front()) {
      report.warning(topic, text + ", not for " + ladder->front().to_string(),
                     "a newer NVRTC may make faster kernels", values);
    } else {
      report.ok(topic, std::move(text), values);
    }
  }
}

void examine_emulator(const EngineOptions& options, const Logger& quiet, DoctorReport& report) {
  const Result<std::shared_ptr<const Driver>> emulator =
      open_driver({"emulator", false, options.emulator_path}, quiet);
  if (emulator) {
    report.ok("emulator", (*emulator)->path(), {{"found", true}, {"path", (*emulator)->path()}});
  } else {
    report.warning("emulator", "none: " + emulator.status().message(),
                   "only programs that run kernels on the CPU need it", {{"found", false}});
  }
}

}  // namespace

std::vector<int> examine_devices(const EngineOptions& options, const FoundNvrtc& nvrtc,
                                 DoctorReport& report) {
  std::vector<int> sms;
  const Logger quiet(LogLevel::kOff, {});
  const std::string path = options.driver == "emulator" ? "" : options.driver;
  const Result<std::shared_ptr<const Driver>> opened = open_driver({path, false, ""}, quiet);
  if (!opened) {
    report.warning("driver", "none: " + opened.status().message(),
                   "kernels can be compiled here, but not launched on a GPU", {{"found", false}});
  } else {
    const Driver& driver = **opened;
    const std::string text = file_of(driver) + ", CUDA " + version_of(driver.version());
    const nlohmann::json values = {
        {"found", true}, {"path", file_of(driver)}, {"version", version_of(driver.version())}};
    // A cubin runs on drivers of the same major version and of later ones.
    if (nvrtc.is_usable && driver.version() / 1000 < nvrtc.major) {
      report.warning(
          "driver", text,
          "it may refuse what NVRTC " + std::to_string(nvrtc.major) +
              " makes: update the driver, or set PAGEJIT_NVRTC to an NVRTC of its version",
          values);
    } else {
      report.ok("driver", text, values);
    }
    int count = 0;
    if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) count = 0;
    if (count == 0) {
      report.warning("GPUs", "the driver has none",
                     "kernels can be compiled here, but not launched on a GPU");
    }
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      std::string name;
      const int sm = sm_of(driver, ordinal, &name);
      examine_gpu(ordinal, name, sm, nvrtc, report);
      sms.push_back(sm);
    }
  }
  examine_emulator(options, quiet, report);
  return sms;
}

}  // namespace pagejit::cli
