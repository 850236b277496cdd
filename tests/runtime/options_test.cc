#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "pagejit/engine.h"

namespace pagejit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kVariables[] = {"PAGEJIT_DRIVER",
                                      "PAGEJIT_ALLOW_EMULATOR",
                                      "PAGEJIT_EMULATOR",
                                      "PAGEJIT_NVRTC",
                                      "PAGEJIT_HOST_CXX",
                                      "PAGEJIT_HOST_BUILD",
                                      "PAGEJIT_CACHE_DIR",
                                      "PAGEJIT_CACHE",
                                      "PAGEJIT_COMPILE_THREADS",
                                      "PAGEJIT_LOG",
                                      "PAGEJIT_JIT",
                                      "PAGEJIT_CACHE_MAX_MIB",
                                      "PAGEJIT_BUNDLES",
                                      "PAGEJIT_READ_ONLY_DIRS",
                                      "PAGEJIT_REMOTE",
                                      "PAGEJIT_REMOTE_LAYOUT",
                                      "PAGEJIT_REMOTE_WRITE",
                                      "PAGEJIT_TRUSTED_KEYS",
                                      "PAGEJIT_REQUIRE_SIGNED",
                                      "PAGEJIT_RECORD",
                                      "PAGEJIT_DUMP",
                                      "PAGEJIT_STATS",
                                      "PAGEJIT_TUNED"};

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() { clear(); }
  ~OptionsTest() override { clear(); }
  static void clear() {
    for (const char* name : kVariables) unsetenv(name);
  }
};

TEST_F(OptionsTest, EmptyEnvironmentYieldsTheDefaults) {
  Result<EngineOptions> options = EngineOptions::from_environment();
  ASSERT_TRUE(options) << options.status().to_string();
  const EngineOptions defaults;
  EXPECT_EQ(options->driver, defaults.driver);
  EXPECT_EQ(options->allow_emulator, defaults.allow_emulator);
  EXPECT_EQ(options->host_build, defaults.host_build);
  EXPECT_EQ(options->disk_cache, defaults.disk_cache);
  EXPECT_EQ(options->compile_threads, defaults.compile_threads);
  EXPECT_EQ(options->log_level, defaults.log_level);
  EXPECT_EQ(options->jit, defaults.jit);
  EXPECT_EQ(options->cache_max_bytes, defaults.cache_max_bytes);
  EXPECT_EQ(options->bundles, defaults.bundles);
  EXPECT_EQ(options->read_only_dirs, defaults.read_only_dirs);
  EXPECT_EQ(options->remote, defaults.remote);
  EXPECT_EQ(options->remote_layout, defaults.remote_layout);
  EXPECT_EQ(options->remote_write, defaults.remote_write);
  EXPECT_EQ(options->trusted_keys, defaults.trusted_keys);
  EXPECT_EQ(options->require_signed, defaults.require_signed);
  EXPECT_EQ(options->record_path, defaults.record_path);
  EXPECT_EQ(options->dump_dir, defaults.dump_dir);
  EXPECT_EQ(options->stats_path, defaults.stats_path);
  EXPECT_EQ(options->tuned, defaults.tuned);
}

TEST_F(OptionsTest, EveryVariableReachesItsField) {
  const std::pair<const char*, const char*> values[] = {
      {"PAGEJIT_DRIVER", "emulator"},   {"PAGEJIT_ALLOW_EMULATOR", "1"},
      {"PAGEJIT_EMULATOR", "/e.so"},    {"PAGEJIT_NVRTC", "/nvrtc"},
      {"PAGEJIT_HOST_CXX", "clang++"},  {"PAGEJIT_HOST_BUILD", "checked"},
      {"PAGEJIT_CACHE_DIR", "/cache"},  {"PAGEJIT_CACHE", "off"},
      {"PAGEJIT_COMPILE_THREADS", "7"}, {"PAGEJIT_LOG", "debug"},
      {"PAGEJIT_JIT", "error"},         {"PAGEJIT_CACHE_MAX_MIB", "3"},
      {"PAGEJIT_BUNDLES", "/a:/b"},     {"PAGEJIT_READ_ONLY_DIRS", ":/c::/d:"},
      {"PAGEJIT_REMOTE", "http://h/p"}, {"PAGEJIT_REMOTE_LAYOUT", "bazel"},
      {"PAGEJIT_REMOTE_WRITE", "1"},    {"PAGEJIT_TRUSTED_KEYS", "ab:cd"},
      {"PAGEJIT_REQUIRE_SIGNED", "1"},  {"PAGEJIT_RECORD", "/r"},
      {"PAGEJIT_DUMP", "/dump"},        {"PAGEJIT_STATS", "/s"},
      {"PAGEJIT_TUNED", "on"}};
  for (auto [name, value] : values) setenv(name, value, 1);
  Result<EngineOptions> options = EngineOptions::from_environment();
  ASSERT_TRUE(options) << options.status().to_string();
  EXPECT_EQ(options->driver, "emulator");
  EXPECT_TRUE(options->allow_emulator);
  EXPECT_EQ(options->emulator_path, "/e.so");
  EXPECT_EQ(options->nvrtc_path, "/nvrtc");
  EXPECT_EQ(options->host_compiler, "clang++");
  EXPECT_EQ(options->host_build, HostBuild::kChecked);
  EXPECT_EQ(options->cache_dir, "/cache");
  EXPECT_FALSE(options->disk_cache);
  EXPECT_EQ(options->compile_threads, 7);
  EXPECT_EQ(options->log_level, LogLevel::kDebug);
  EXPECT_EQ(options->jit, JitPolicy::kError);
  EXPECT_EQ(options->cache_max_bytes, uint64_t{3} << 20);
  EXPECT_EQ(options->bundles, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(options->read_only_dirs, (std::vector<std::string>{"/c", "/d"}));
  EXPECT_EQ(options->remote, "http://h/p");
  EXPECT_EQ(options->remote_layout, RemoteLayout::kBazel);
  EXPECT_TRUE(options->remote_write);
  EXPECT_EQ(options->trusted_keys, (std::vector<std::string>{"ab", "cd"}));
  EXPECT_TRUE(options->require_signed);
  EXPECT_EQ(options->record_path, "/r");
  EXPECT_EQ(options->dump_dir, "/dump");
  EXPECT_EQ(options->stats_path, "/s");
  EXPECT_TRUE(options->tuned);
}

TEST_F(OptionsTest, EveryJitPolicyHasItsWord) {
  for (auto [word, policy] : {std::pair("on", JitPolicy::kOn),
                              {"warn", JitPolicy::kWarn},
                              {"error", JitPolicy::kError},
                              {"off", JitPolicy::kOff}}) {
    setenv("PAGEJIT_JIT", word, 1);
    Result<EngineOptions> options = EngineOptions::from_environment();
    ASSERT_TRUE(options) << options.status().to_string();
    EXPECT_EQ(options->jit, policy) << word;
  }
}

TEST_F(OptionsTest, EveryMalformedValueIsNamedWithWhatIsLegal) {
  const struct {
    const char* name;
    const char* value;
    const char* legal;
  } cases[] = {{"PAGEJIT_ALLOW_EMULATOR", "yes", "0, 1"},
               {"PAGEJIT_HOST_BUILD", "debug", "plain, checked, asan"},
               {"PAGEJIT_CACHE", "1", "on, off"},
               {"PAGEJIT_LOG", "verbose", "debug, info, warning, error, off"},
               {"PAGEJIT_JIT", "deny", "on, warn, error, off"},
               {"PAGEJIT_JIT", "ERROR", "on, warn, error, off"},
               {"PAGEJIT_JIT", "0", "on, warn, error, off"},
               {"PAGEJIT_COMPILE_THREADS", "-1", "[0, 256]"},
               {"PAGEJIT_COMPILE_THREADS", "257", "[0, 256]"},
               {"PAGEJIT_COMPILE_THREADS", "4 ", "[0, 256]"},
               {"PAGEJIT_COMPILE_THREADS", "four", "[0, 256]"},
               {"PAGEJIT_COMPILE_THREADS", "99999999999999999999", "[0, 256]"}};
  for (const auto& c : cases) {
    clear();
    setenv(c.name, c.value, 1);
    Result<EngineOptions> options = EngineOptions::from_environment();
    ASSERT_FALSE(options) << c.name << "=" << c.value;
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(options.status().message(),
                AllOf(HasSubstr(std::string(c.name) + "=" + c.value), HasSubstr(c.legal)));
  }
}

TEST_F(OptionsTest, AnEmptyVariableCountsAsUnset) {
  for (const char* name : kVariables) setenv(name, "", 1);
  EXPECT_TRUE(EngineOptions::from_environment());
}

}  // namespace
}  // namespace pagejit
