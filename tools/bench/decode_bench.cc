#include "tools/bench/decode_bench.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tools/bench/device_timer.h"
#include "tools/bench/read_bandwidth.h"
#include "tools/check/check.h"

namespace pagejit {
namespace {

// Pools of KV cache together hold at least this, and there are at least two: several times any L2
// (126 MB on a B200).
constexpr double kRotatedBytes = 1024e6;
constexpr int kMaxPools = 64;
// A graph of launches takes at least this long, so that the events' resolution (some 0.5 us) is
// below 0.1 %.
constexpr double kGraphUs = 2000;
constexpr int kReplays = 15;

Status check_kernel(Engine& engine, const DeviceSession& session, const DecodeBenchCase& c,
                    double* max_error) {
  CheckOptions options;
  options.batch.num_kv_heads = std::min(c.num_kv_heads, 2);
  options.num_splits = c.num_splits;
  const Result<CheckReport> report = run_check(engine, session, c.spec, options);
  if (!report) return report.status();
  *max_error = report->max_error;
  if (report->passed) return Status::ok();
  return Status(StatusCode::kInternal,
                canonical_text(c.spec) + ": not timed, its results are wrong: " + report->sentence);
}

// Random values of about unit size. The time of memory reads does not depend on them, but the
// tensor cores' power does.
std::vector<uint16_t> random_halves(size_t count) {
  std::mt19937 random(7);
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) {
    const uint32_t bits = static_cast<uint32_t>(random());
    value = static_cast<uint16_t>((bits & 0x807f) |
                                  0x3f00);  // bf16 of 0.5 to 1, f16 of about 1.8; either sign
  }
  return values;
}

// One copy of all a launch reads and writes.
struct Pool {
  DeviceBuffer k;
  DeviceBuffer v;
  DeviceBuffer block_table;
};

}  // namespace

struct DecodeBench::Impl {
  Engine* engine;
  DeviceSession* session;
  EngineOptions options;
  std::string device_name;
  double read_bandwidth = 0;

  Result<Pool> make_pool(const DecodeBenchCase& c, const std::vector<uint16_t>& pattern,
                         int seed) const;
};

DecodeBench::DecodeBench(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DecodeBench::~DecodeBench() = default;
const std::string& DecodeBench::device_name() const { return impl_->device_name; }

Result<std::unique_ptr<DecodeBench>> DecodeBench::create(Engine& engine, DeviceSession& session,
                                                         const EngineOptions& options) {
  if (session.is_emulator()) {
    return Status(StatusCode::kUnsupported,
                  "the emulator has no times worth printing; benchmarks need a GPU");
  }
  const Driver& driver = session.driver();
  char name[256] = {};
  if (Status s = driver.check(driver.cuDeviceGetName(name, sizeof name, session.device()),
                              "cuDeviceGetName");
      !s)
    return s;
  auto impl = std::make_unique<Impl>();
  impl->engine = &engine;
  impl->session = &session;
  impl->options = options;
  impl->device_name = std::string(name) + ", driver for CUDA " +
                      std::to_string(driver.version() / 1000) + "." +
                      std::to_string(driver.version() % 1000 / 10);
  return std::unique_ptr<DecodeBench>(new DecodeBench(std::move(impl)));
}

Result<Pool> DecodeBench::Impl::make_pool(const DecodeBenchCase& c,
                                          const std::vector<uint16_t>& pattern, int seed) const {
  const Driver& driver = session->driver();
  const size_t blocks_per_seq =
      static_cast<size_t>((c.seq_len + c.spec.block_size - 1) / c.spec.block_size);
  const size_t num_blocks = blocks_per_seq * static_cast<size_t>(c.num_seqs);
  const size_t bytes = num_blocks * static_cast<size_t>(c.spec.block_size) *
                       static_cast<size_t>(c.num_kv_heads) * static_cast<size_t>(c.spec.head_size) *
                       2;
  Pool pool;
  for (DeviceBuffer* cache : {&pool.k, &pool.v}) {
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*session, bytes);
    if (!buffer) return buffer.status();
    *cache = std::move(*buffer);
    const size_t pattern_bytes = std::min(pattern.size() * 2, bytes);
    if (Status s = cache->upload(0, pattern.data(), pattern_bytes); !s) return s;
    for (size_t done = pattern_bytes; done < bytes; done *= 2) {  // doubles what is there
      const size_t more = std::min(done, bytes - done);
      if (Status s = driver.check(
              driver.cuMemcpyDtoDAsync(cache->address() + done, cache->address(), more, nullptr),
              "cuMemcpyDtoDAsync");
          !s) {
        return s;
      }
    }
  }
  std::vector<int32_t> table(num_blocks);
  std::iota(table.begin(), table.end(), 0);
  if (c.shuffled_blocks)
    std::shuffle(table.begin(), table.end(), std::mt19937(static_cast<unsigned>(seed)));
  Result<DeviceBuffer> buffer = DeviceBuffer::copy_of(*session, table.data(), table.size() * 4);
  if (!buffer) return buffer.status();
  pool.block_table = std::move(*buffer);
  return pool;
}

Result<double> DecodeBench::read_bandwidth() {
  if (impl_->read_bandwidth == 0) {
    const Result<Target> target = impl_->engine->target_of_device(impl_->session->device());
    if (!target) return target.status();
    const std::shared_ptr<Compiler> compiler = make_nvrtc_compiler(impl_->options.nvrtc_path);
    // 4 GB: enough to leave every L2 behind, small enough for every GPU served.
    const Result<double> measured =
        measure_read_bandwidth(*impl_->session, *compiler, *target, size_t{4} << 30);
    if (!measured) return measured.status();
    impl_->read_bandwidth = *measured;
  }
  return impl_->read_bandwidth;
}

Result<DecodeBenchResult> DecodeBench::run(const DecodeBenchCase& c) {
  DecodeBenchResult result;
  result.bench_case = c;
  if (Status s = check_kernel(*impl_->engine, *impl_->session, c, &result.check_max_error); !s)
    return s;
  const DeviceSession& session = *impl_->session;
  Result<Kernel> kernel = impl_->engine->prepare(c.spec, session.device());
  if (!kernel) return kernel.status();

  const int num_heads = c.num_kv_heads * c.spec.group_size;
  const size_t q_elements = static_cast<size_t>(c.num_seqs) * static_cast<size_t>(num_heads) *
                            static_cast<size_t>(c.spec.head_size);
  const std::vector<uint16_t> pattern = random_halves(std::max(q_elements, size_t{1} << 22));
  result.kv_bytes = 4.0 * c.num_seqs * c.seq_len * c.num_kv_heads * c.spec.head_size;
  result.num_pools =
      std::clamp(static_cast<int>(std::ceil(kRotatedBytes / result.kv_bytes)), 2, kMaxPools);
  std::vector<Pool> pools;
  for (int i = 0; i < result.num_pools; ++i) {
    Result<Pool> pool = impl_->make_pool(c, pattern, i);
    if (!pool) return pool.status();
    pools.push_back(std::move(*pool));
  }
  Result<DeviceBuffer> q = DeviceBuffer::copy_of(session, pattern.data(), q_elements * 2);
  if (!q) return q.status();
  Result<DeviceBuffer> out = DeviceBuffer::allocate(session, q_elements * 2);
  if (!out) return out.status();
  const std::vector<int32_t> lengths(static_cast<size_t>(c.num_seqs), c.seq_len);
  Result<DeviceBuffer> seq_lens =
      DeviceBuffer::copy_of(session, lengths.data(), lengths.size() * 4);
  if (!seq_lens) return seq_lens.status();
  const size_t workspace_bytes =
      kernel->workspace_bytes(c.num_seqs, c.num_kv_heads, c.seq_len, c.num_splits);
  Result<DeviceBuffer> workspace = DeviceBuffer::allocate(session, workspace_bytes);
  if (!workspace) return workspace.status();
  Result<DeviceTimer> timer = DeviceTimer::create(session);
  if (!timer) return timer.status();
  if (workspace_bytes > 0) {
    if (Status s = kernel->workspace_init(workspace->data(), workspace_bytes, timer->stream()); !s)
      return s;
  }
  if (Status s = session.synchronize(); !s) return s;

  AttentionArgs args;
  args.q = q->data();
  args.q_stride_head = args.out_stride_head = c.spec.head_size;
  args.q_stride_token = args.out_stride_token = static_cast<int64_t>(num_heads) * c.spec.head_size;
  args.k_strides.head = c.spec.head_size;
  args.k_strides.token = static_cast<int64_t>(c.num_kv_heads) * c.spec.head_size;
  args.k_strides.block = args.k_strides.token * c.spec.block_size;
  args.v_strides = args.k_strides;
  args.max_blocks_per_seq = (c.seq_len + c.spec.block_size - 1) / c.spec.block_size;
  args.block_table_stride = args.max_blocks_per_seq;
  args.seq_lens = seq_lens->data<int32_t>();
  args.out = out->data();
  args.num_seqs = c.num_seqs;
  args.num_kv_heads = c.num_kv_heads;
  args.scale = 1.0f / std::sqrt(static_cast<float>(c.spec.head_size));
  args.max_seq_len = c.seq_len;
  args.num_splits = c.num_splits;
  args.workspace = workspace->data();
  args.workspace_bytes = workspace_bytes;
  result.num_splits = c.num_splits != 0
                          ? c.num_splits
                          : kernel->choose_num_splits(c.num_seqs, c.num_kv_heads, c.seq_len);

  const auto launch_all = [&](int rounds) {
    return [&, rounds](CUstream stream) {
      for (int i = 0; i < rounds; ++i) {
        for (const Pool& pool : pools) {
          args.k_cache = pool.k.data();
          args.v_cache = pool.v.data();
          args.block_table = pool.block_table.data<int32_t>();
          if (Status s = kernel->launch(args, stream); !s) return s;
        }
      }
      return Status::ok();
    };
  };
  const Result<double> probe = timer->time_us(launch_all(1));
  if (!probe) return probe.status();
  const int rounds = std::clamp(static_cast<int>(kGraphUs / *probe), 1, 50);
  Result<std::vector<double>> times = timer->time_graph_us(launch_all(rounds), kReplays);
  if (!times) return times.status();
  std::sort(times->begin(), times->end());
  const double launches = static_cast<double>(rounds) * result.num_pools;
  result.median_us = (*times)[times->size() / 2] / launches;
  result.min_us = times->front() / launches;
  return result;
}

std::string to_json(const DecodeBenchResult& r, double read_terabytes_per_s) {
  const DecodeBenchCase& c = r.bench_case;
  char text[640];
  std::snprintf(
      text, sizeof text,
      "{\"name\": \"%s\", \"spec\": \"%s\", \"num_seqs\": %d, \"num_kv_heads\": %d, \"seq_len\": "
      "%d, "
      "\"shuffled_blocks\": %s, \"num_splits\": %d, \"num_pools\": %d, \"median_us\": %.3f, "
      "\"min_us\": %.3f, "
      "\"kv_bytes\": %.0f, \"tb_per_s\": %.4f, \"read_tb_per_s\": %.4f, \"check_max_error\": %.3e}",
      c.name.c_str(), canonical_text(c.spec).c_str(), c.num_seqs, c.num_kv_heads, c.seq_len,
      c.shuffled_blocks ? "true" : "false", r.num_splits, r.num_pools, r.median_us, r.min_us,
      r.kv_bytes, r.terabytes_per_s(), read_terabytes_per_s, r.check_max_error);
  return text;
}

}  // namespace pagejit
