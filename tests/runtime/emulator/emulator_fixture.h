// EmulatorTest: the emulator opened as the runtime opens it, kernel texts compiled on the spot, and
// the driver API by name. Thread-safety: none.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "pagejit/engine.h"
#include "runtime/emulator/driver_api.h"
#include "runtime/emulator/emulator.h"

namespace pagejit_emulator {

// The text of templates/device/host/prelude.cuh and `kernel_text` as one self-contained source, as
// the renderer makes it. Lines of the kernel text are reported as "kernel.cu:<line>"; its first
// line is 1.
std::string host_source(std::string_view kernel_text);

// The host image of a whole source. Images are kept on disk, as most tests share a process with no
// other.
std::string compile_source(const std::string& source, pagejit::HostBuild build);

inline std::string compile_image(std::string_view kernel_text, pagejit::HostBuild build) {
  return compile_source(host_source(kernel_text), build);
}

struct LaunchShape {
  unsigned grid_x = 1;
  unsigned num_threads = 32;
  unsigned shared_bytes = 0;
  unsigned grid_y = 1;
  unsigned grid_z = 1;
  CUstream stream = nullptr;
  bool pdl = false;  // with programmatic stream serialization
};

// How threads are ordered and when copies arrive.
struct Schedule {
  int order = kPagejitEmulatorFifo;
  int completion = kPagejitEmulatorLate;
  int resident = 1;
  uint64_t seed = 1;
};

// Every order with every completion.
std::vector<Schedule> all_schedules();

class EmulatorTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A function of the library by its exported name: call<decltype(cuInit)>("cuInit")(0).
  template <class Function>
  Function* symbol(const char* name) {
    return reinterpret_cast<Function*>(find_symbol(name));
  }

  // Kernel `name` of a text; the test fails where it cannot be made.
  CUfunction kernel(std::string_view text, const char* name,
                    pagejit::HostBuild build = pagejit::HostBuild::kPlain);

  template <class Params>
  CUresult launch(CUfunction function, const LaunchShape& shape, Params params) {
    void* pointers[] = {&params};
    return launch_raw(function, shape, pointers);
  }
  CUresult launch_raw(CUfunction function, const LaunchShape& shape, void** params);

  // Device memory that lives as long as the test; filled with the values.
  void* allocate(size_t bytes);
  template <class T>
  T* upload(const std::vector<T>& values) {
    void* p = allocate(values.size() * sizeof(T));
    copy_in(p, values.data(), values.size() * sizeof(T));
    return static_cast<T*>(p);
  }
  template <class T>
  std::vector<T> download(const T* p, size_t count) {
    std::vector<T> values(count);
    copy_out(values.data(), p, count * sizeof(T));
    return values;
  }
  void copy_in(void* to, const void* from, size_t bytes);
  void copy_out(void* to, const void* from, size_t bytes);

  void schedule(const Schedule& schedule);
  PagejitEmulatorOptions options();
  void configure(const PagejitEmulatorOptions& options);
  PagejitEmulatorCounters counters();
  std::string report();

  static CUdeviceptr address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

 private:
  static void* find_symbol(const char* name);

  std::vector<CUlibrary> libraries_;
  std::vector<void*> allocations_;
};

}  // namespace pagejit_emulator
