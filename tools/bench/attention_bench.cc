#include "tools/bench/attention_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/check/check.h"

namespace pagejit {
namespace {

int blocks_of(const KernelSpec& spec, int tokens) {
  return (tokens + spec.block_size - 1) / spec.block_size;
}

Status check_kernel(Engine& engine, const DeviceSession& session, const AttentionBenchCase& c,
                    double* max_error) {
  CheckOptions options;
  options.batch.num_kv_heads = std::min(c.num_kv_heads, 2);
  options.num_splits = c.num_splits;
  if (c.spec.queries != QueryLengths::kOne) {
    options.batch.seq_lens = {1, 700, 2049, 513};
    options.batch.query_lens = {1, 1, 257, 513};
  }
  const Result<CheckReport> report = run_check(engine, session, c.spec, options);
  if (!report) return report.status();
  *max_error = report->max_error;
  if (report->passed) return Status::ok();
  return Status(StatusCode::kInternal,
                canonical_text(c.spec) + ": not timed, its results are wrong: " + report->sentence);
}

// Rows of as many entries as the longest sequence has blocks, from a pool's blocks in turn.
std::vector<int32_t> make_table(const AttentionBenchCase& c, const std::vector<int32_t>& blocks) {
  const auto width = static_cast<size_t>(blocks_of(c.spec, c.longest()));
  std::vector<int32_t> table(width * static_cast<size_t>(c.all_seqs()), -1);
  auto from = blocks.begin();
  for (int seq = 0; seq < c.all_seqs(); ++seq) {
    const int count = blocks_of(c.spec, seq < c.num_seqs ? c.seq_len : c.chunk_seq_len);
    std::copy_n(from, count, table.begin() + static_cast<int64_t>(width) * seq);
    from += count;
  }
  return table;
}

}  // namespace

int pools_for(const AttentionBenchCase& c) { return pools_for(read_bytes(c), kv_bytes(c)); }

Result<AttentionWorkload> AttentionWorkload::create(Engine& engine, const DeviceSession& session,
                                                    const AttentionBenchCase& c, int num_pools) {
  AttentionWorkload work;
  Result<Kernel> kernel = engine.prepare(c.spec, session.device());
  if (!kernel) return kernel.status();
  Status status;
  const auto keep = [&status](DeviceBuffer& to, Result<DeviceBuffer> from) {
    if (from) {
      to = std::move(*from);
    } else if (status) {
      status = from.status();
    }
  };
  const auto copy = [&](DeviceBuffer& to, const auto& host) {
    keep(to, DeviceBuffer::copy_of(session, host.data(), host.size() * sizeof(host[0])));
  };

  const int64_t num_blocks = int64_t{c.num_seqs} * blocks_of(c.spec, c.seq_len) +
                             (c.chunk_queries > 0 ? blocks_of(c.spec, c.chunk_seq_len) : 0);
  for (int i = 0; i < num_pools && status; ++i) {
    Result<KvPool> pool =
        make_kv_pool(session, c.spec, c.num_kv_heads, num_blocks, c.shuffled_blocks, i);
    if (!pool) return pool.status();
    std::vector<int32_t> blocks(static_cast<size_t>(num_blocks));
    status = pool->block_table.download(0, blocks.data(), blocks.size() * sizeof(int32_t));
    if (status) copy(work.tables_.emplace_back(), make_table(c, blocks));
    work.pools_.push_back(std::move(*pool));
  }
  const int64_t num_heads = int64_t{c.num_kv_heads} * c.spec.group_size;
  const auto rows = static_cast<size_t>(c.query_tokens() * num_heads);
  const auto head_size = static_cast<size_t>(c.spec.head_size);
  const auto head_size_v = static_cast<size_t>(value_head_size(c.spec));
  keep(work.q_, make_random_buffer(session, c.spec.q_dtype, rows * head_size));
  keep(work.out_,
       DeviceBuffer::allocate(
           session, rows * head_size_v * static_cast<size_t>(data_type_bytes(c.spec.out_dtype))));
  std::vector<int32_t> lengths(static_cast<size_t>(c.num_seqs), c.seq_len);
  std::vector<int32_t> starts;
  for (int seq = 0; seq <= c.num_seqs; ++seq) starts.push_back(seq);
  if (c.chunk_queries > 0) {
    lengths.push_back(c.chunk_seq_len);
    starts.push_back(c.query_tokens());
  }
  copy(work.seq_lens_, lengths);
  copy(work.query_start_loc_, starts);
  copy(work.scales_, std::vector<float>(1, 1.0f));
  // Slopes and logits of a usual size; the time does not depend on them.
  copy(work.head_values_, std::vector<float>(static_cast<size_t>(num_heads), 0.125f));
  if (!status) return status.with_context("memory of the benchmark");

  AttentionArgs& args = work.args_;
  args.q = work.q_.data();
  args.q_stride_head = c.spec.head_size;
  args.q_stride_token = num_heads * c.spec.head_size;
  args.out_stride_head = value_head_size(c.spec);
  args.out_stride_token = num_heads * value_head_size(c.spec);
  args.k_strides = args.v_strides = nhd_strides(c.spec, c.num_kv_heads);
  args.q_scale = work.scales_.data<float>();
  if (c.spec.kv_layout != KvLayout::kDsMla) args.k_scale = args.q_scale;
  if (!c.spec.latent) args.v_scale = args.k_scale;
  args.max_blocks_per_seq = blocks_of(c.spec, c.longest());
  args.block_table_stride = args.max_blocks_per_seq;
  args.seq_lens = work.seq_lens_.data<int32_t>();
  args.query_start_loc = work.query_start_loc_.data<int32_t>();
  args.num_query_tokens = c.query_tokens();
  args.out = work.out_.data();
  args.num_seqs = c.all_seqs();
  args.num_kv_heads = c.num_kv_heads;
  args.scale = 1.0f / std::sqrt(static_cast<float>(c.spec.head_size));
  args.max_seq_len = c.longest();
  args.window_left = c.window_left;
  args.window_right = c.window_right;
  args.chunk_size = c.chunk_size;
  args.soft_cap = c.soft_cap;
  args.block_sparse = c.block_sparse;
  if (c.spec.alibi) args.alibi_slopes = work.head_values_.data<float>();
  if (c.spec.sinks) args.sinks = work.head_values_.data<float>();
  if (data_type_bytes(c.spec.out_dtype) == 1) args.out_scale = work.scales_.data<float>();
  work.wanted_splits_ = c.num_splits;
  if (status = work.use(session, *kernel); !status) return status;
  return work;
}

Status AttentionWorkload::use(const DeviceSession& session, const Kernel& kernel) {
  kernel_ = kernel;
  args_.num_splits = wanted_splits_;
  num_splits_ = wanted_splits_ != 0 ? wanted_splits_ : kernel.choose_num_splits(args_);
  const size_t workspace_bytes = kernel.workspace_bytes(args_);
  Status status;
  if (workspace_bytes > 0) {
    if (workspace_bytes > workspace_.size_bytes()) {
      Result<DeviceBuffer> larger = DeviceBuffer::allocate(session, workspace_bytes);
      status = larger.status();
      if (larger) workspace_ = std::move(*larger);
    }
    if (status) status = kernel.workspace_init(workspace_.data(), workspace_bytes, nullptr);
    if (status) status = session.synchronize();
    if (!status) return status.with_context("workspace of the benchmark");
  }
  args_.workspace = workspace_bytes > 0 ? workspace_.data() : nullptr;
  args_.workspace_bytes = workspace_bytes;
  return {};
}

Status AttentionWorkload::launch(int pool, Stream stream) {
  const auto index = static_cast<size_t>(pool);
  args_.k_cache = pools_[index].k.data();
  if (!kernel_.spec().latent) args_.v_cache = pools_[index].v.data();
  args_.block_table = tables_[index].data<int32_t>();
  return kernel_.launch(args_, stream);
}

Result<AttentionBenchResult> run_attention_bench(BenchDevice& device, const AttentionBenchCase& c) {
  AttentionBenchResult result;
  result.bench_case = c;
  Status status = check_kernel(device.engine(), device.session(), c, &result.check_max_error);
  if (!status) return status;
  Result<AttentionWorkload> work =
      AttentionWorkload::create(device.engine(), device.session(), c, pools_for(c));
  if (!work) return work.status();
  result.num_pools = work->num_pools();
  result.num_splits = work->num_splits();
  const Result<RotatedTimes> times =
      time_rotated(device.session(), work->num_pools(),
                   [&](int pool, Stream stream) { return work->launch(pool, stream); });
  if (!times) return times.status();
  result.times = *times;
  return result;
}

BenchResult to_bench_result(const AttentionBenchResult& r, const std::string& suite) {
  const AttentionBenchCase& c = r.bench_case;
  BenchResult result;
  result.suite = suite;
  result.name = c.name;
  result.shape = {{"spec", canonical_text(c.spec)},
                  {"num_seqs", c.num_seqs},
                  {"seq_len", c.seq_len},
                  {"num_kv_heads", c.num_kv_heads},
                  {"chunk_queries", c.chunk_queries},
                  {"chunk_seq_len", c.chunk_seq_len},
                  {"shuffled_blocks", c.shuffled_blocks},
                  {"asked_splits", c.num_splits}};
  result.value = r.times.median_us;
  result.unit = "us";
  result.noise = r.times.noise;
  result.figures = {{"min_us", r.times.min_us},        {"kv_bytes", kv_bytes(c)},
                    {"tb_per_s", r.terabytes_per_s()}, {"flops", flops(c)},
                    {"tflops", r.teraflops()},         {"num_splits", r.num_splits},
                    {"num_pools", r.num_pools},        {"check_max_error", r.check_max_error}};
  return result;
}

}  // namespace pagejit
