// Bundles and read-only directories under an engine: order, match rules, the ladder, signatures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cache/bundle.h"
#include "cache/bundle_writer.h"
#include "runtime/optional/sodium.h"
#include "tests/runtime/jit_policy_fixture.h"

namespace pagejit {
namespace {

using ::testing::HasSubstr;

class StoreLayersTest : public JitPolicyTest {
 protected:
  // A directory with what `compiler` makes of the specs for the target.
  std::string make_directory(const std::string& name, const std::vector<KernelSpec>& specs,
                             const char* target = "sm_90a") {
    EngineOptions with = options();
    with.cache_dir = directory.path() + "/" + name;
    const auto engine = make_engine(with);
    for (const KernelSpec& spec : specs) {
      const Result<KernelInfo> info = engine->precompile(spec, *parse_target(target));
      EXPECT_TRUE(info) << info.status().to_string();
    }
    nvrtc->compiles = nvrtc->openings = 0;
    return with.cache_dir;
  }

  // The same as a bundle; the directory goes.
  std::string make_bundle(const std::string& name, const std::vector<KernelSpec>& specs,
                          const char* target = "sm_90a") {
    const std::string from = make_directory(name + ".directory", specs, target);
    cache::BundleWriter writer;
    for (const auto& file : std::filesystem::recursive_directory_iterator(from + "/v1/objects")) {
      if (!file.is_regular_file()) continue;
      std::ifstream stream(file.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
      Result<cache::Entry> entry = cache::decode_entry(bytes);
      EXPECT_TRUE(entry) << entry.status().to_string();
      EXPECT_TRUE(writer.add(*entry));
    }
    const std::string path = directory.path() + "/" + name + ".pjb";
    const Status written = writer.write_file(path);
    EXPECT_TRUE(written) << written.to_string();
    std::filesystem::remove_all(from);
    return path;
  }

  static std::string read(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  static bool has_objects(const std::string& cache_dir) {
    return std::filesystem::exists(cache_dir + "/v1/objects");
  }
};

TEST_F(StoreLayersTest, BundleServesWithoutACompileAndIsNotCopied) {
  EngineOptions with = options_with(JitPolicy::kError);
  with.bundles = {make_bundle("a", {kSpec})};
  const auto engine = make_engine(with);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kBundle);
  EXPECT_EQ(nvrtc->openings, 0);
  EXPECT_EQ(engine->stats().bundle_hits, 1u);
  EXPECT_FALSE(has_objects(with.cache_dir));
  const auto told = take_events();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, JitEventKind::kHit);
  EXPECT_EQ(told[0].origin, ImageOrigin::kBundle);
}

TEST_F(StoreLayersTest, BundleInMemoryServesFirst) {
  const std::string path = make_bundle("a", {kSpec});
  const std::string bytes = read(path);
  EngineOptions with = options_with(JitPolicy::kError);
  with.memory_bundles = {bytes};
  with.bundles = {path};
  const auto engine = make_engine(with);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kBundle);
  EXPECT_TRUE(logged(LogLevel::kDebug, "in memory (0)"));
}

TEST_F(StoreLayersTest, ReadOnlyDirectoryServesAndStaysAsItIs) {
  const std::string lower = make_directory("lower", {kSpec});
  EngineOptions with = options_with(JitPolicy::kOn);
  with.read_only_dirs = {lower};
  const auto engine = make_engine(with);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kReadOnlyDirectory);
  EXPECT_EQ(engine->stats().read_only_hits, 1u);
  // What it lacks is compiled, into the directory of the engine.
  const KernelSpec other{.group_size = 8};
  EXPECT_EQ(prepare(*engine, other).info().origin, ImageOrigin::kCompiled);
  size_t entries = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(lower + "/v1/objects")) {
    entries += file.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(entries, 1u);
  EXPECT_TRUE(has_objects(with.cache_dir));
}

TEST_F(StoreLayersTest, LayersAreAskedInOrder) {
  nvrtc->image_prefix = "of the bundle";
  const std::string bundle = make_bundle("a", {kSpec});
  nvrtc->image_prefix = "of the lower directory";
  const std::string lower = make_directory("lower", {kSpec});
  nvrtc->image_prefix = "of the own directory";
  ASSERT_TRUE(make_engine()->precompile(kSpec, *parse_target("sm_90a")));
  EngineOptions with = options_with(JitPolicy::kError);
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kDisk);
  with.read_only_dirs = {lower};
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kReadOnlyDirectory);
  with.bundles = {bundle};
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kBundle);
}

TEST_F(StoreLayersTest, AnotherCompilersBundleIsAMissWhereThereIsACompiler) {
  const std::string bundle = make_bundle("a", {kSpec});
  nvrtc->identity_text = "fake 2.0";
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {bundle};
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kCompiled);
}

// However many targets the GPU's ladder has: 7.5 has one, 8.6 and 9.0 have two.
TEST_F(StoreLayersTest, AnotherCompilersBundleIsAMissWhereOnlyLoadingTellsTheCompiler) {
  for (const auto& [sm, target] : {std::pair{75, "sm_75"}, {86, "sm_80"}, {90, "sm_90a"}}) {
    nvrtc->is_known_unopened = true;
    nvrtc->identity_text = "fake 1.0";
    EngineOptions with = options_with(JitPolicy::kOn);
    with.cache_dir += target;
    with.bundles = {make_bundle(target, {kSpec}, target)};
    nvrtc->is_known_unopened = false;
    nvrtc->identity_text = "fake 2.0";
    const pagejit_stub::Device device{.sm = sm};
    script->set_devices(&device, 1);
    EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kCompiled) << target;
  }
}

TEST_F(StoreLayersTest, TheSameCompilersBundleServesWhereOnlyLoadingTellsTheCompiler) {
  for (const auto& [sm, target] : {std::pair{75, "sm_75"}, {86, "sm_80"}, {90, "sm_90a"}}) {
    EngineOptions with = options_with(JitPolicy::kOn);
    with.bundles = {make_bundle(target, {kSpec}, target)};
    nvrtc->is_known_unopened = false;
    const pagejit_stub::Device device{.sm = sm};
    script->set_devices(&device, 1);
    EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kBundle) << target;
    nvrtc->is_known_unopened = true;
  }
}

TEST_F(StoreLayersTest, PtxOfABundleServesAGpuThatIsNewerThanTheCompiler) {
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {make_bundle("a", {kSpec}, "compute_121")};
  const pagejit_stub::Device device{.sm = 130};
  script->set_devices(&device, 1);
  for (const char* target : {"sm_130a", "sm_130f", "sm_130"}) nvrtc->unknown_targets.insert(target);
  const Kernel kernel = prepare(*make_engine(with), kSpec);
  EXPECT_EQ(kernel.info().target.to_string(), "compute_121");
  EXPECT_EQ(kernel.info().origin, ImageOrigin::kBundle);
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(StoreLayersTest, WithoutACompilerAnyCompilersBundleServes) {
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {make_bundle("a", {kSpec})};
  nvrtc->available = false;
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kBundle);
}

TEST_F(StoreLayersTest, BundleOfALaterTargetServesThoughACompilerIsThere) {
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {make_bundle("a", {kSpec}, "sm_80")};
  const pagejit_stub::Device device{.sm = 86};
  script->set_devices(&device, 1);
  const auto engine = make_engine(with);
  const Kernel kernel = prepare(*engine, kSpec);
  EXPECT_EQ(kernel.info().origin, ImageOrigin::kBundle);
  EXPECT_EQ(kernel.info().target.to_string(), "sm_80");
  EXPECT_EQ(nvrtc->compiles, 0);
}

TEST_F(StoreLayersTest, BundleOfAnotherMajorDoesNotServe) {
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {make_bundle("a", {kSpec}, "sm_80")};
  const auto engine = make_engine(with);  // sm_90
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kCompiled);
}

TEST_F(StoreLayersTest, WhatCannotBeOpenedIsLeftOutWithOneWarning) {
  const std::string path = make_bundle("a", {kSpec});
  std::string bytes = read(path);
  bytes[40] ^= 1;
  EngineOptions with = options_with(JitPolicy::kOn);
  with.memory_bundles = {bytes};
  with.bundles = {directory.path() + "/missing.pjb", path};
  with.read_only_dirs = {directory.path() + "/missing"};
  const auto engine = make_engine(with);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kBundle);
  EXPECT_TRUE(logged(LogLevel::kWarning, "the bundle in memory (0) is left out"));
  EXPECT_TRUE(logged(LogLevel::kWarning, "missing.pjb is left out"));
  EXPECT_TRUE(logged(LogLevel::kWarning, "/missing is left out"));
  EXPECT_EQ(log_lines(LogLevel::kWarning), 3u);
  prepare(*engine, {.group_size = 8});
  EXPECT_EQ(log_lines(LogLevel::kWarning), 3u);
}

TEST_F(StoreLayersTest, DamagedEntryOfABundleIsCompiled) {
  const std::string path = make_bundle("a", {kSpec});
  {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-40, std::ios::end);  // before the closing digest: the last bytes of the image
    stream.put('!');
  }
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {path};
  const auto engine = make_engine(with);
  EXPECT_EQ(prepare(*engine, kSpec).info().origin, ImageOrigin::kCompiled);
  EXPECT_TRUE(logged(LogLevel::kWarning, "a stored kernel is not used (bundle)"));
  EXPECT_EQ(engine->stats().corrupt_entries, 1u) << "a layer is read once on a miss";
}

TEST_F(StoreLayersTest, EntryOfABundleForAnotherKernelIsCompiled) {
  // Intact and under the right key, but its metadata tell of another symbol.
  const std::string from = make_directory("from", {kSpec});
  cache::BundleWriter writer;
  for (const auto& file : std::filesystem::recursive_directory_iterator(from + "/v1/objects")) {
    if (!file.is_regular_file()) continue;
    cache::Entry entry = *cache::decode_entry(read(file.path()));
    const size_t at = entry.metadata.find("fake_kernel");
    ASSERT_NE(at, std::string::npos);
    entry.metadata.replace(at, 4, "bake");
    ASSERT_TRUE(writer.add(entry));
  }
  const std::string path = directory.path() + "/b.pjb";
  ASSERT_TRUE(writer.write_file(path));
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {path};
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kCompiled);
}

TEST_F(StoreLayersTest, StoredKernelOfABundleThatTheDriverRefusesIsCompiledOnce) {
  nvrtc->image_prefix = pagejit_stub::kRefusedImage;
  EngineOptions with = options_with(JitPolicy::kOn);
  with.bundles = {make_bundle("a", {kSpec})};
  nvrtc->image_prefix = "good";
  for (const ImageOrigin origin : {ImageOrigin::kCompiled, ImageOrigin::kDisk}) {
    const auto engine = make_engine(with);
    const Kernel kernel = prepare(*engine, kSpec);
    EXPECT_EQ(kernel.info().origin, origin) << "the second engine finds what the first has stored";
    EXPECT_EQ(engine->stats().driver_rejects, 1u);
  }
  EXPECT_EQ(nvrtc->compiles, 1);
}

TEST_F(StoreLayersTest, RequireSignedTakesOnlyWhatATrustedKeyHasSigned) {
  const auto signer = make_sodium_signer(SigningSeed{7});
  ASSERT_TRUE(signer) << signer.status().to_string();
  const std::string key = cache::to_hex((*signer)->public_key());
  const std::string path = make_bundle("a", {kSpec});
  EngineOptions with = options_with(JitPolicy::kError);
  with.bundles = {path};
  with.trusted_keys = {key};
  with.require_signed = true;
  EXPECT_EQ(make_engine(with)->prepare(kSpec, 0).status().code(), StatusCode::kDenied);
  EXPECT_TRUE(logged(LogLevel::kWarning, "a.pjb is left out"));

  const auto bundle = cache::Bundle::open_file(path);
  ASSERT_TRUE(bundle);
  const auto block =
      cache::make_signature_block(cache::bundle_message((*bundle)->digest()), **signer);
  ASSERT_TRUE(block) << block.status().to_string();
  std::ofstream(path, std::ios::app | std::ios::binary) << *block;
  EXPECT_EQ(prepare(*make_engine(with), kSpec).info().origin, ImageOrigin::kBundle);
}

TEST_F(StoreLayersTest, MalformedOrMissingTrustedKeysAreRefusedAtOnce) {
  EngineOptions with = options();
  with.trusted_keys = {"12"};
  Result<std::shared_ptr<Engine>> engine = create_engine(with, dependencies());
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("PAGEJIT_TRUSTED_KEYS"));
  with.trusted_keys = {};
  with.require_signed = true;
  engine = create_engine(with, dependencies());
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("PAGEJIT_REQUIRE_SIGNED"));
}

}  // namespace
}  // namespace pagejit
