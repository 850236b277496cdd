// What the engine's tests share: a compiler that only counts, and an engine on the stub driver with
// its own cache directory. Not thread-safe but for FakeCompiler.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "generator/families.h"
#include "runtime/driver/driver.h"
#include "runtime/engine/dependencies.h"
#include "tests/runtime/stub_driver/stub_driver.h"

namespace pagejit {

// Makes images out of nothing. What it does is set before the engine runs; the counter is for any
// thread.
class FakeCompiler final : public Compiler {
 public:
  std::vector<std::string> options(const Target&) const override { return {"-fake"}; }
  Result<std::string> identity() override {
    ++openings;
    if (!available) return Status(StatusCode::kCompilerUnavailable, "there is no compiler");
    return identity_text;
  }
  Result<std::string> identity_unopened() override {
    if (available && !is_known_unopened) {
      return Status(StatusCode::kCompilerUnavailable, "only loading would tell");
    }
    --openings;
    return identity();
  }
  Status check_target(const Target& target) override {
    ++openings;
    ++target_checks;
    if (!available) return Status(StatusCode::kCompilerUnavailable, "there is no compiler");
    if (unknown_targets.count(target.to_string()) == 0) return {};
    return Status(StatusCode::kUnsupported, target.to_string() + ": unknown to the fake compiler");
  }
  Result<CompiledImage> compile(const KernelSource& source, const jit::JobOptions& job) override {
    ++openings;
    ++compiles;
    if (on_compile) on_compile(source);
    if (on_compile_job) {
      if (Status status = on_compile_job(source, job); !status) return status;
    }
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    if (!failure) return failure;
    CompiledImage image;
    const bool is_refused = refused_targets.count(source.target.to_string()) != 0;
    image.image = (is_refused ? pagejit_stub::kRefusedImage : image_prefix) + " image of " +
                  source.kernel_name;
    image.log = log;
    image.report.registers = 96;
    image.report.static_shared_bytes = 16;
    image.compile_ms = compile_ms;
    image.compiler_identity = identity_text;
    image.compiler = identity_text;
    return image;
  }

  bool available = true;
  bool is_known_unopened = true;
  std::string identity_text = "fake 1.0";
  std::string image_prefix = "good";
  // What differs between machines that compile the same.
  std::string log = "fake log";
  double compile_ms = 12.5;
  std::set<std::string> unknown_targets;
  std::set<std::string> refused_targets;                // whose images the driver refuses
  std::function<void(const KernelSource&)> on_compile;  // called during each compile
  // The same with the job's options; what it returns is the compile's failure.
  std::function<Status(const KernelSource&, const jit::JobOptions&)> on_compile_job;
  std::chrono::milliseconds delay{0};
  Status failure;
  std::atomic<int> compiles{0};
  std::atomic<int> target_checks{0};
  std::atomic<int> openings{0};  // calls that may open a real compiler
};

inline Result<AnyConfig> fake_plan(const AnySpec& any, const Target& target) {
  const KernelSpec& spec = std::get<KernelSpec>(any);
  KernelConfig config{};
  config.spec = spec;
  config.target = target;
  config.attention.q_type = static_cast<pagejit_shared::Element>(spec.q_dtype);
  config.attention.kv_type = static_cast<pagejit_shared::Element>(spec.kv_dtype);
  config.attention.out_type = static_cast<pagejit_shared::Element>(spec.out_dtype);
  config.attention.head_size = spec.head_size;
  config.attention.head_size_v = value_head_size(spec);
  config.attention.kv_alignment = spec.kv_alignment;
  config.attention.kv_layout = static_cast<pagejit_shared::KvLayout>(spec.kv_layout);
  config.attention.is_latent = spec.latent;
  config.attention.has_token_scales = spec.token_scales;
  config.attention.group_size = spec.group_size;
  config.attention.block_size = spec.block_size;
  config.attention.token_groups = 4;
  config.attention.row_warps = 1;
  config.attention.row_tiles = 2;
  config.attention.is_ragged = spec.queries != QueryLengths::kOne;
  config.attention.causality = static_cast<pagejit_shared::Causality>(spec.causality);
  config.attention.kv_table = static_cast<pagejit_shared::KvTable>(spec.kv_table);
  config.attention.has_window = spec.window;
  config.attention.has_chunks = spec.chunked;
  config.attention.has_custom_mask = spec.custom_mask;
  config.attention.has_bidirectional_ranges = spec.bidirectional_ranges;
  config.attention.is_block_sparse = spec.block_sparse;
  config.attention.has_soft_cap = spec.soft_cap;
  config.attention.has_alibi = spec.alibi;
  config.attention.has_qq_bias = spec.qq_bias;
  config.attention.has_sinks = spec.sinks;
  config.attention.group_tokens = 16;
  config.attention.num_stages = 3;
  config.attention.shared_bytes = 64 * 1024;
  config.attention.debug = spec.debug;
  return AnyConfig(config);
}

inline Result<KernelSource> fake_render(const AnyConfig& config) {
  return KernelSource{.text = "source of " + spec_text(config),
                      .kernel_name = "fake_kernel",
                      .target = target_of(config),
                      .config = config};
}

// A directory that is removed with its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "pagejit-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    // The same library that the engine opens: its state is one for the process.
    Result<std::shared_ptr<const Driver>> driver = Driver::open(PAGEJIT_STUB_DRIVER);
    if (!driver) std::abort();
    auto find = reinterpret_cast<pagejit_stub::Script* (*)()>(
        driver.value()->symbol("pagejit_stub_script"));
    script = find();
    script->reset();
  }
  ~EngineTest() override { script->reset(); }

  EngineOptions options() {
    EngineOptions result;
    result.driver = PAGEJIT_STUB_DRIVER;
    result.cache_dir = directory.path() + "/cache";
    result.log_level = LogLevel::kDebug;
    result.log_callback = [this](LogLevel level, std::string_view line) {
      std::lock_guard lock(log_mutex);
      log.emplace_back(level, line);
    };
    return result;
  }

  EngineDependencies dependencies() {
    EngineDependencies result;
    result.plan = fake_plan;
    result.render = fake_render;
    result.open_driver = open_driver;
    result.nvrtc = nvrtc;
    result.host = host;
    result.max_resident_kernels = max_resident_kernels;
    return result;
  }

  std::shared_ptr<Engine> make_engine() { return make_engine(options()); }
  std::shared_ptr<Engine> make_engine(EngineOptions with) {
    Result<std::shared_ptr<Engine>> engine = create_engine(std::move(with), dependencies());
    EXPECT_TRUE(engine) << engine.status().to_string();
    return engine ? *engine : nullptr;
  }

  Kernel prepare(Engine& engine, const KernelSpec& spec = {}, int device = 0) {
    Result<Kernel> kernel = engine.prepare(spec, device);
    EXPECT_TRUE(kernel) << kernel.status().to_string();
    return kernel ? *kernel : Kernel();
  }

  bool logged(LogLevel level, const std::string& part) {
    std::lock_guard lock(log_mutex);
    for (const auto& [at, line] : log) {
      if (at == level && line.find(part) != std::string::npos) return true;
    }
    return false;
  }

  // Legal arguments for a launch; the addresses are never used.
  static AttentionArgs legal_args() {
    AttentionArgs args;
    args.q = reinterpret_cast<const void*>(0x1000);
    args.q_stride_token = 1024;
    args.q_stride_head = 128;
    args.k_cache = reinterpret_cast<const void*>(0x2000);
    args.v_cache = reinterpret_cast<const void*>(0x3000);
    args.k_strides = args.v_strides = {16 * 8 * 128, 8 * 128, 128};
    args.num_blocks = 100;
    args.block_table = reinterpret_cast<const int32_t*>(0x4000);
    args.block_table_stride = 64;
    args.max_blocks_per_seq = 64;
    args.seq_lens = reinterpret_cast<const int32_t*>(0x5000);
    args.out = reinterpret_cast<void*>(0x6000);
    args.out_stride_token = 1024;
    args.out_stride_head = 128;
    args.num_seqs = 2;
    args.num_kv_heads = 8;
    args.scale = 0.0883883476f;
    args.num_splits = 1;
    return args;
  }

  TemporaryDirectory directory;
  pagejit_stub::Script* script = nullptr;
  std::shared_ptr<FakeCompiler> nvrtc = std::make_shared<FakeCompiler>();
  std::shared_ptr<FakeCompiler> host = std::make_shared<FakeCompiler>();
  size_t max_resident_kernels = 1024;
  std::mutex log_mutex;
  std::vector<std::pair<LogLevel, std::string>> log;
};

}  // namespace pagejit
