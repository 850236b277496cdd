// What tests of tuning share: a session on the emulator, a directory, and a timer that says what
// the test wants. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/tile_text.h"
#include "runtime/engine/device.h"
#include "tools/tune/tune_run.h"

namespace pagejit {

inline constexpr KernelSpec kTunedSpec{.head_size = 64, .group_size = 2};

// The times that a test chooses, by the candidate's place in the order of first calls.
class FakeTimer final : public TuneTimer {
 public:
  explicit FakeTimer(std::vector<double> us) : us_(std::move(us)) {}

  Result<double> time_us(const TuneProblem&, const KernelConfig& config,
                         const Kernel& kernel) override {
    ++calls;
    EXPECT_TRUE(kernel) << "a kernel that can be launched";
    EXPECT_EQ(kernel.info().threads_per_cta, config.threads_per_cta());
    const std::string tile = tile_text(config.attention);
    auto place = std::find(tiles.begin(), tiles.end(), tile);
    if (place == tiles.end()) place = tiles.insert(tiles.end(), tile);
    return us_.at(static_cast<size_t>(place - tiles.begin()));
  }

  std::vector<std::string> tiles;
  int calls = 0;

 private:
  const std::vector<double> us_;
};

class TuneRunTest : public ::testing::Test {
 protected:
  TuneRunTest() {
    std::string name = (std::filesystem::temp_directory_path() / "pagejit-tune-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder = name;
    Result<EngineOptions> read = EngineOptions::from_environment();
    if (!read) std::abort();
    options = *read;
    options.cache_dir = folder + "/cache";
    Result<std::unique_ptr<DeviceSession>> opened = DeviceSession::open(options);
    if (!opened) std::abort();
    session = std::move(*opened);
  }
  ~TuneRunTest() override {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  }

  std::shared_ptr<Engine> make_engine(const EngineOptions& with) {
    Result<std::shared_ptr<Engine>> engine = Engine::create(with);
    EXPECT_TRUE(engine);
    return engine ? *engine : nullptr;
  }

  TuneRequest request() {
    TuneRequest result;
    result.spec = kTunedSpec;
    result.target = *make_engine(options)->target_of_device(0);
    result.device = device_name(session->driver(), 0);
    result.options = options;
    result.problems = {{.num_seqs = 4, .seq_len = 100, .num_kv_heads = 2}};
    CheckOptions check;
    check.batch.seq_lens = {1, 40};
    result.checks = {check};
    result.max_candidates = 2;
    result.rounds = 3;
    result.version = "test";
    return result;
  }

  std::unique_ptr<cache::DiskCache> open_disk() {
    cache::DiskCacheOptions disk;
    disk.directory = {options.cache_dir, "", "the test"};
    return cache::DiskCache::open(std::move(disk));
  }

  std::string folder;
  EngineOptions options;
  std::unique_ptr<DeviceSession> session;
};

}  // namespace pagejit
