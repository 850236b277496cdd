// What the tests of runtime/jit share: a folder of their own, environments by hand, stand-ins for
// NVRTC, the real NVRTC.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "generator/config.h"
#include "runtime/jit/environment.h"
#include "runtime/jit/nvrtc_search.h"

namespace pagejit::jit {

// A folder that is removed with its content.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  // Creates missing parents. Returns the full path.
  std::string write(const std::string& name, const std::string& content) const;
  std::string write_program(const std::string& name, const std::string& content) const;
  std::string copy(const std::string& from, const std::string& name) const;
  std::string link(const std::string& target, const std::string& name) const;
  // The names of what lies in it, sorted.
  std::vector<std::string> list() const;

 private:
  std::string path_;
};

// Only what stands in the map is set.
Environment environment_of(std::map<std::string, std::string> variables);

// The stand-ins that the build made.
struct Stubs {
  static std::string nvrtc_12_3();
  static std::string nvrtc_12_7();
  static std::string nvrtc_12_11();
  static std::string nvrtc_incomplete();   // 12.6
  static std::string nvrtc_with_soname();  // 12.5, SONAME libnvrtc.so.12
  static std::string builtins();
  static std::string without_build_id();
};

// A search that sees neither this machine nor this process.
NvrtcSearch closed_search(const TempFolder& root);

// The real NVRTC that pagejit would find here, or PAGEJIT_NVRTC; "" where there is none.
std::string real_nvrtc();

std::string read_all(const std::string& path);
int num_open_fds();

// A source for `target`; the name of the kernel is "tiny".
KernelSource source_of(const std::string& text, Target target);
extern const char kTinyKernel[];

}  // namespace pagejit::jit

// Skips a test that needs what this machine lacks, saying so; after tools/setup.sh nothing may be
// lacking, so tools/test.sh sets PAGEJIT_TEST_REQUIRE_COMPILERS and the test fails instead.
#define PAGEJIT_NEEDS(exists, what)                                 \
  if (!(exists)) {                                                  \
    if (std::getenv("PAGEJIT_TEST_REQUIRE_COMPILERS") != nullptr) { \
      FAIL() << "no " what " was found, and this run requires it";  \
    }                                                               \
    GTEST_SKIP() << "no " what " on this machine";                  \
  }
#define PAGEJIT_NEEDS_NVRTC() PAGEJIT_NEEDS(!::pagejit::jit::real_nvrtc().empty(), "NVRTC")
