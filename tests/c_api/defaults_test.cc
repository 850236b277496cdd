// What _init sets: the defaults of C++.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <tuple>

#include "pagejit/pagejit.h"
#include "runtime/c_api/families.h"
#include "runtime/c_api/options.h"

namespace pagejit {
namespace {

TEST(DefaultsTest, OfEngineOptionsAreThoseOfCpp) {
  pagejit_engine_options options;
  ASSERT_EQ(pagejit_engine_options_init(&options, sizeof options), PAGEJIT_OK);
  EngineOptions of_c;
  // Whatever C does not say keeps this.
  of_c.allow_emulator = of_c.remote_write = of_c.require_signed = of_c.tuned = true;
  of_c.disk_cache = false;
  of_c.compile_threads = 7;
  of_c.cache_max_bytes = 7;
  of_c.host_build = HostBuild::kChecked;
  of_c.remote_layout = RemoteLayout::kBazel;
  of_c.jit = JitPolicy::kOff;
  of_c.log_level = LogLevel::kOff;
  of_c.driver = of_c.emulator_path = of_c.nvrtc_path = of_c.host_compiler = of_c.cache_dir =
      of_c.remote = of_c.record_path = of_c.dump_dir = of_c.stats_path = "x";
  of_c.bundles = of_c.read_only_dirs = of_c.trusted_keys = {"x"};
  of_c.memory_bundles = {"x"};
  ASSERT_TRUE(c_api::to_cpp(&options, &of_c));
  const EngineOptions of_cpp;
  auto fields = [](const EngineOptions& o) {
    return std::tie(o.driver, o.allow_emulator, o.emulator_path, o.nvrtc_path, o.host_compiler,
                    o.host_build, o.cache_dir, o.disk_cache, o.cache_max_bytes, o.memory_bundles,
                    o.bundles, o.read_only_dirs, o.remote, o.remote_layout, o.remote_write,
                    o.trusted_keys, o.require_signed, o.compile_threads, o.jit, o.record_path,
                    o.dump_dir, o.stats_path, o.log_level, o.tuned);
  };
  EXPECT_TRUE(fields(of_c) == fields(of_cpp));
  EXPECT_FALSE(of_c.log_callback);
  EXPECT_FALSE(of_c.on_event);
}

template <class Family>
void expect_default_spec() {
  typename Family::CSpec spec = Family::to_c(typename Family::Spec{});
  typename Family::Spec of_c;
  ASSERT_TRUE(Family::to_cpp(&spec, &of_c)) << Family::kSpecName;
  EXPECT_EQ(of_c, typename Family::Spec{}) << Family::kSpecName;
}

// `Args` without room for arrays.
template <class Family, class Args>
void expect_default_args() {
  alignas(64) char bytes[2][sizeof(typename Family::Args)] = {};
  const typename Family::CArgs args = Family::default_args();
  auto* of_c = new (bytes[0]) typename Family::Args;
  ASSERT_TRUE(Family::to_cpp(&args, of_c)) << Family::kSpecName;
  new (bytes[1]) Args;
  EXPECT_EQ(std::memcmp(bytes[0], bytes[1], sizeof(Args)), 0) << Family::kSpecName;
}

TEST(DefaultsTest, AreThoseOfCpp) {
  using namespace c_api;  // NOLINT(google-build-using-namespace)
  expect_default_spec<AttentionFamily>();
  expect_default_spec<MergeStatesFamily>();
  expect_default_spec<CacheWriteFamily>();
  expect_default_spec<CopyBlocksFamily>();
  expect_default_spec<GatherCacheFamily>();
  expect_default_spec<ConvertFloat8Family>();
  expect_default_spec<MlaCacheWriteFamily>();
  expect_default_spec<IndexKeyWriteFamily>();
  expect_default_spec<IndexKeyGatherFamily>();
  expect_default_spec<IndexLogitsFamily>();
  expect_default_spec<TopKFamily>();
  expect_default_args<AttentionFamily, AttentionArgs>();
  expect_default_args<MergeStatesFamily, MergeStatesArgs>();
  expect_default_args<CacheWriteFamily, CacheWriteArgs>();
  expect_default_args<CopyBlocksFamily, CopyBlocksArgs>();
  expect_default_args<GatherCacheFamily, GatherCacheArgs>();
  expect_default_args<ConvertFloat8Family, ConvertFloat8Args>();
  expect_default_args<MlaCacheWriteFamily, MlaCacheWriteArgs>();
  expect_default_args<IndexKeyWriteFamily, IndexKeyWriteArgs>();
  expect_default_args<IndexKeyGatherFamily, IndexKeyGatherArgs>();
  expect_default_args<IndexLogitsFamily, IndexLogitsArgs>();
  expect_default_args<TopKFamily, TopKArgs>();
  expect_default_args<CascadeFamily, CascadeArgs>();
  expect_default_args<SparseAttentionFamily, SparseAttentionArgs>();
}

}  // namespace
}  // namespace pagejit
