#include "tools/cli/check_session.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

namespace pagejit::cli {
namespace {

std::string version_of(int cuda_version) {
  return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

}  // namespace

Result<std::unique_ptr<CheckSession>> CheckSession::open(
    const CheckSessionFlags& flags, std::function<void(const std::string&)> on_log) {
  std::optional<Target> asked;
  if (!flags.arch.empty()) {
    const Result<Target> target = parse_target(flags.arch);
    if (!target) return target.status().with_context("--arch");
    asked = *target;
    // Read once, when the emulator is opened; a GPU's driver does not know it.
    setenv("PAGEJIT_EMULATOR_SM", std::to_string(asked->sm).c_str(), 1);
  }
  Result<EngineOptions> options = make_engine_options(flags.engine, std::move(on_log));
  if (!options) return options.status();
  if (flags.engine.driver) {
    options->allow_emulator = false;
  } else if (flags.allow_emulator) {
    options->allow_emulator = true;
  }
  if (asked && asked->is_host() && options->driver.empty()) options->driver = "emulator";

  std::unique_ptr<CheckSession> session(new CheckSession());
  // What the command itself says of the device replaces the warning that no GPU was found.
  EngineOptions quiet = *options;
  quiet.log_callback = [](LogLevel, std::string_view) {};
  Result<std::unique_ptr<DeviceSession>> device = DeviceSession::open(quiet);
  if (!device) return device.status();
  session->device_ = std::move(device).value();
  if (session->is_emulator() && options->driver.empty()) options->driver = "emulator";
  session->options_ = *options;

  Result<std::shared_ptr<Engine>> engine = Engine::create(*options);
  if (!engine) return engine.status();
  session->engine_ = std::move(engine).value();
  const Result<Target> target = session->engine_->target_of_device(0);
  if (!target) return target.status();
  session->target_ = *target;
  if (asked && asked->sm != target->sm) {
    return Status(StatusCode::kInvalidArgument,
                  "--arch " + flags.arch + ": the device takes " + target->to_string());
  }
  return session;
}

std::string CheckSession::describe_device() const {
  if (is_emulator()) return "the CPU emulator (" + target_.to_string() + ")";
  const Driver& driver = device_->driver();
  char name[256] = "GPU";
  CUdevice handle = 0;
  if (driver.cuDeviceGet(&handle, device_->device()) == CUDA_SUCCESS) {
    driver.cuDeviceGetName(name, sizeof(name), handle);
  }
  return std::string(name) + " (" + target_.to_string() + "), driver " +
         version_of(driver.version());
}

CheckOptions make_check(const WorkItem& item, int max_kv_heads, uint64_t seed, int batch_idx) {
  constexpr int kNumLayouts = 5;  // of CacheLayout
  CheckOptions options;
  // Two show an error in how KV heads are told apart.
  options.batch.num_kv_heads = item.num_kv_heads == 0 ? 2 : item.num_kv_heads;
  if (max_kv_heads > 0) {
    options.batch.num_kv_heads = std::min(options.batch.num_kv_heads, max_kv_heads);
  }
  options.batch.seed = seed + static_cast<uint64_t>(batch_idx);
  options.batch.layout = static_cast<CacheLayout>(batch_idx % kNumLayouts);
  options.batch.scale = static_cast<float>(item.scale);
  options.batch.window_left = item.window_left;
  options.batch.window_right = item.window_right;
  options.batch.chunk_size = item.chunk_size;
  options.batch.block_sparse = item.block_sparse;
  options.batch.ranges_within_window = item.ranges_within_window;
  options.batch.shared_qq_bias = batch_idx % 2 == 1;
  options.batch.soft_cap = static_cast<float>(item.soft_cap);
  const bool is_ragged = item.spec.queries != QueryLengths::kOne;
  if (batch_idx == 0) {
    options.batch.seq_lens = default_seq_lens(item.spec.block_size);
    if (is_ragged) {
      // Nothing, a prompt, a decode step, speculative tokens and a chunk behind a long cache.
      options.batch.query_lens = {0, 1, item.spec.block_size - 1, 1, 3, 70, 5};
      options.batch.unused_queries = 2;
    }
    return options;
  }
  std::mt19937_64 random(options.batch.seed);
  // One long enough for several splits, and six of any length below it; 2,048 is the least that
  // counts as long.
  options.batch.seq_lens = {2048 + static_cast<int>(random() % 200)};
  for (int i = 0; i < 6; ++i) options.batch.seq_lens.push_back(static_cast<int>(random() % 1200));
  std::swap(options.batch.seq_lens[0], options.batch.seq_lens[random() % 7]);
  if (is_ragged) {
    const int most = item.spec.queries == QueryLengths::kFew ? 8 : 100;
    for (size_t i = 0; i < options.batch.seq_lens.size(); ++i) {
      options.batch.query_lens.push_back(static_cast<int>(random() % static_cast<uint64_t>(most)));
    }
  }
  return options;
}

CascadeCheckOptions make_cascade_check(const WorkItem& item, int num_levels, int max_kv_heads,
                                       uint64_t seed, int batch_idx) {
  CheckOptions suffixes = make_check(item, max_kv_heads, seed, batch_idx);
  const auto num_seqs = static_cast<int>(suffixes.batch.seq_lens.size());
  for (size_t i = 0; i < suffixes.batch.query_lens.size(); ++i) {
    // A level's query tokens stand at the end of its KV tokens.
    int& queries = suffixes.batch.query_lens[i];
    queries = std::min(queries, suffixes.batch.seq_lens[i]);
  }
  CascadeCheckOptions options;
  for (int level = 0; level + 1 < num_levels; ++level) {
    // Half as many sequences per group on each level; prefixes that end within a block, and one
    // that is empty.
    const int most = std::max(1, num_seqs >> level);
    std::vector<CascadeGroup>& groups = options.batch.prefixes.emplace_back();
    for (int seq = 0; seq < num_seqs; seq += most) {
      const bool is_empty = seq > 0 && seq + most >= num_seqs;
      groups.push_back({std::min(most, num_seqs - seq),
                        is_empty ? 0 : 7 * item.spec.block_size + 130 / (level + 1) + seq});
    }
  }
  options.batch.batch = suffixes.batch;
  return options;
}

}  // namespace pagejit::cli
