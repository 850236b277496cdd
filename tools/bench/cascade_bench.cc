#include "tools/bench/cascade_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/check/cascade_check.h"
#include "tools/check/check.h"

namespace pagejit {
namespace {

int blocks_of(const KernelSpec& spec, int tokens) {
  return (tokens + spec.block_size - 1) / spec.block_size;
}

double token_bytes(const CascadeBenchCase& c) {
  return 2.0 * c.num_kv_heads * c.spec.head_size * data_type_bytes(c.spec.kv_dtype);
}

Status check_kernels(Engine& engine, const DeviceSession& session, const CascadeBenchCase& c,
                     double* max_error) {
  CascadeCheckOptions options;
  options.batch.prefixes = {{{5, 1000}, {3, 33}}};
  options.batch.batch.num_kv_heads = std::min(c.num_kv_heads, 2);
  options.batch.batch.seq_lens = {1, 100, 16, 300, 0, 15, 17, 64};
  Result<CheckReport> report =
      run_cascade_check(engine, session, CascadeSpec{.attention = c.spec}, options);
  if (report && report->passed) {
    *max_error = report->max_error;
    CheckOptions flat;
    flat.batch.num_kv_heads = options.batch.batch.num_kv_heads;
    report = run_check(engine, session, c.spec, flat);
  }
  if (!report) return report.status();
  if (report->passed) return Status::ok();
  return Status(StatusCode::kInternal,
                canonical_text(c.spec) + ": not timed, its results are wrong: " + report->sentence);
}

// Enqueues and waits.
template <class Kernel>
Result<DeviceBuffer> make_workspace(const DeviceSession& session, const Kernel& kernel,
                                    size_t bytes) {
  Result<DeviceBuffer> workspace = DeviceBuffer::allocate(session, bytes);
  if (!workspace || bytes == 0) return workspace;
  Status status = kernel.workspace_init(workspace->data(), bytes, nullptr);
  if (status) status = session.synchronize();
  if (!status) return status;
  return workspace;
}

}  // namespace

double flat_kv_bytes(const CascadeBenchCase& c) {
  return token_bytes(c) * c.num_seqs * (static_cast<double>(c.prefix_len) + c.suffix_len);
}

double cascade_kv_bytes(const CascadeBenchCase& c, int tile_rows) {
  const int tiles = (c.num_seqs * c.spec.group_size + tile_rows - 1) / tile_rows;
  return token_bytes(c) * (static_cast<double>(tiles) * c.prefix_len +
                           static_cast<double>(c.num_seqs) * c.suffix_len);
}

Status CascadeWorkload::make_pools(const DeviceSession& session, const CascadeBenchCase& c,
                                   int num_pools) {
  const int prefix_blocks = blocks_of(c.spec, c.prefix_len);
  const int suffix_blocks = blocks_of(c.spec, c.suffix_len);
  const int64_t num_blocks = prefix_blocks + int64_t{c.num_seqs} * suffix_blocks;
  for (int i = 0; i < num_pools; ++i) {
    Result<KvPool> kv = make_kv_pool(session, c.spec, c.num_kv_heads, num_blocks, true, i);
    if (!kv) return kv.status();
    std::vector<int32_t> blocks(static_cast<size_t>(num_blocks));
    Status status = kv->block_table.download(0, blocks.data(), blocks.size() * sizeof(int32_t));
    if (!status) return status;
    const std::vector<int32_t> suffix(blocks.begin() + prefix_blocks, blocks.end());
    std::vector<int32_t> flat;
    for (int seq = 0; seq < c.num_seqs; ++seq) {
      flat.insert(flat.end(), blocks.begin(), blocks.begin() + prefix_blocks);
      const auto own = suffix.begin() + int64_t{seq} * suffix_blocks;
      flat.insert(flat.end(), own, own + suffix_blocks);
    }
    Result<DeviceBuffer> flat_table = DeviceBuffer::copy_of(session, flat.data(), flat.size() * 4);
    if (!flat_table) return flat_table.status();
    Result<DeviceBuffer> suffix_table =
        DeviceBuffer::copy_of(session, suffix.data(), suffix.size() * 4);
    if (!suffix_table) return suffix_table.status();
    pools_.push_back({std::move(*kv), std::move(*flat_table), std::move(*suffix_table)});
  }
  return {};
}

Status CascadeWorkload::make_arrays(const DeviceSession& session, const CascadeBenchCase& c) {
  Status status;
  const auto keep = [&status](DeviceBuffer& to, Result<DeviceBuffer> from) {
    if (from) {
      to = std::move(*from);
    } else if (status) {
      status = from.status();
    }
  };
  const auto copy = [&](DeviceBuffer& to, const std::vector<int32_t>& host) {
    keep(to, DeviceBuffer::copy_of(session, host.data(), host.size() * sizeof(int32_t)));
  };
  const int64_t num_heads = int64_t{c.num_kv_heads} * c.spec.group_size;
  const auto elements = static_cast<size_t>(c.num_seqs * num_heads * c.spec.head_size);
  keep(q_, make_random_buffer(session, c.spec.q_dtype, elements));
  keep(out_, DeviceBuffer::allocate(
                 session, elements * static_cast<size_t>(data_type_bytes(c.spec.out_dtype))));
  const auto num_seqs = static_cast<size_t>(c.num_seqs);
  copy(prefix_starts_, {0, c.num_seqs});
  copy(prefix_lens_, {c.prefix_len});
  copy(suffix_lens_, std::vector<int32_t>(num_seqs, c.suffix_len));
  copy(flat_lens_, std::vector<int32_t>(num_seqs, c.prefix_len + c.suffix_len));
  if (!status) return status;

  AttentionArgs& flat = flat_args_;
  flat.q = q_.data();
  flat.q_stride_head = flat.out_stride_head = c.spec.head_size;
  flat.q_stride_token = flat.out_stride_token = num_heads * c.spec.head_size;
  flat.k_strides = flat.v_strides = nhd_strides(c.spec, c.num_kv_heads);
  flat.max_blocks_per_seq = blocks_of(c.spec, c.prefix_len) + blocks_of(c.spec, c.suffix_len);
  flat.block_table_stride = flat.max_blocks_per_seq;
  flat.seq_lens = flat_lens_.data<int32_t>();
  flat.out = out_.data();
  flat.num_seqs = c.num_seqs;
  flat.num_kv_heads = c.num_kv_heads;
  flat.scale = 1.0f / std::sqrt(static_cast<float>(c.spec.head_size));
  flat.max_seq_len = c.prefix_len + c.suffix_len;

  CascadeArgs& cascade = cascade_args_;
  cascade.num_levels = 2;
  cascade.q = flat.q;
  cascade.q_stride_head = cascade.out_stride_head = flat.q_stride_head;
  cascade.q_stride_token = cascade.out_stride_token = flat.q_stride_token;
  cascade.k_strides = cascade.v_strides = flat.k_strides;
  cascade.num_query_tokens = c.num_seqs;
  cascade.num_kv_heads = c.num_kv_heads;
  cascade.out = flat.out;
  cascade.scale = flat.scale;
  levels_[0].query_start_loc = prefix_starts_.data<int32_t>();
  levels_[0].num_seqs = 1;
  levels_[0].max_blocks_per_seq = blocks_of(c.spec, c.prefix_len);
  levels_[0].seq_lens = prefix_lens_.data<int32_t>();
  levels_[0].max_seq_len = c.prefix_len;
  levels_[1].num_seqs = c.num_seqs;
  levels_[1].max_blocks_per_seq = blocks_of(c.spec, c.suffix_len);
  levels_[1].seq_lens = suffix_lens_.data<int32_t>();
  levels_[1].max_seq_len = c.suffix_len;
  for (CascadeLevel& level : levels_) level.block_table_stride = level.max_blocks_per_seq;
  return {};
}

Status CascadeWorkload::make_workspaces(const DeviceSession& session) {
  cascade_args_.levels = levels_;
  Result<DeviceBuffer> workspace =
      make_workspace(session, cascade_, cascade_.workspace_bytes(cascade_args_));
  if (!workspace) return workspace.status();
  workspace_ = std::move(*workspace);
  cascade_args_.workspace = workspace_.data();
  cascade_args_.workspace_bytes = workspace_.size_bytes();
  workspace = make_workspace(session, flat_, flat_.workspace_bytes(flat_args_));
  if (!workspace) return workspace.status();
  flat_workspace_ = std::move(*workspace);
  flat_args_.workspace = flat_workspace_.data();
  flat_args_.workspace_bytes = flat_workspace_.size_bytes();
  return {};
}

Result<CascadeWorkload> CascadeWorkload::create(Engine& engine, const DeviceSession& session,
                                                const CascadeBenchCase& c, int num_pools) {
  CascadeWorkload work;
  Result<CascadeKernel> cascade =
      engine.prepare(CascadeSpec{.attention = c.spec}, session.device());
  if (!cascade) return cascade.status();
  work.cascade_ = *cascade;
  Result<Kernel> flat = engine.prepare(c.spec, session.device());
  if (!flat) return flat.status();
  work.flat_ = *flat;
  Status status = work.make_pools(session, c, num_pools);
  if (status) status = work.make_arrays(session, c);
  if (status) status = work.make_workspaces(session);
  if (!status) return status.with_context("memory of the benchmark");
  return work;
}

Status CascadeWorkload::launch_cascade(int pool, Stream stream) {
  const Pool& from = pools_[static_cast<size_t>(pool)];
  cascade_args_.levels = levels_;
  cascade_args_.k_cache = from.kv.k.data();
  cascade_args_.v_cache = from.kv.v.data();
  levels_[0].block_table = from.kv.block_table.data<int32_t>();
  levels_[1].block_table = from.suffix_table.data<int32_t>();
  return cascade_.launch(cascade_args_, stream);
}

Status CascadeWorkload::launch_flat(int pool, Stream stream) {
  const Pool& from = pools_[static_cast<size_t>(pool)];
  flat_args_.k_cache = from.kv.k.data();
  flat_args_.v_cache = from.kv.v.data();
  flat_args_.block_table = from.flat_table.data<int32_t>();
  return flat_.launch(flat_args_, stream);
}

void CascadeWorkload::describe(CascadeBenchResult* result) const {
  CascadeArgs args = cascade_args_;
  args.levels = levels_;
  result->prefix_splits = cascade_.choose_num_splits(args, 0);
  result->suffix_splits = cascade_.choose_num_splits(args, 1);
  result->flat_splits = flat_.choose_num_splits(flat_args_);
  result->num_pools = num_pools();
}

Result<CascadeBenchResult> run_cascade_bench(BenchDevice& device, const CascadeBenchCase& c) {
  CascadeBenchResult result;
  result.bench_case = c;
  Status status = check_kernels(device.engine(), device.session(), c, &result.check_max_error);
  if (!status) return status;
  // Each byte of a pool once.
  const double pool_bytes =
      token_bytes(c) * (c.prefix_len + static_cast<double>(c.num_seqs) * c.suffix_len);
  Result<CascadeWorkload> work = CascadeWorkload::create(device.engine(), device.session(), c,
                                                         pools_for(pool_bytes, pool_bytes));
  if (!work) return work.status();
  work->describe(&result);
  const auto launch_cascade = [&](int pool, Stream s) { return work->launch_cascade(pool, s); };
  const auto launch_flat = [&](int pool, Stream s) { return work->launch_flat(pool, s); };
  Result<RotatedTimes> times = time_rotated(device.session(), work->num_pools(), launch_cascade);
  if (!times) return times.status();
  result.cascade = *times;
  times = time_rotated(device.session(), work->num_pools(), launch_flat);
  if (!times) return times.status();
  result.flat = *times;
  return result;
}

BenchResult to_bench_result(const CascadeBenchResult& r) {
  const CascadeBenchCase& c = r.bench_case;
  BenchResult result;
  result.suite = "cascade";
  result.name = c.name;
  result.shape = {{"spec", canonical_text(c.spec)},
                  {"num_seqs", c.num_seqs},
                  {"num_kv_heads", c.num_kv_heads},
                  {"prefix_len", c.prefix_len},
                  {"suffix_len", c.suffix_len}};
  result.value = r.cascade.median_us;
  result.unit = "us";
  result.noise = r.cascade.noise;
  result.figures = {{"min_us", r.cascade.min_us},        {"flat_median_us", r.flat.median_us},
                    {"flat_min_us", r.flat.min_us},      {"speedup", r.speedup()},
                    {"flat_kv_bytes", flat_kv_bytes(c)}, {"prefix_splits", r.prefix_splits},
                    {"suffix_splits", r.suffix_splits},  {"flat_splits", r.flat_splits},
                    {"num_pools", r.num_pools},          {"check_max_error", r.check_max_error}};
  return result;
}

std::vector<CascadeBenchCase> cascade_cases() {
  std::vector<CascadeBenchCase> cases;
  const auto add = [&](const std::string& name, int num_kv_heads, int group_size, int num_seqs,
                       int prefix_len, int suffix_len) {
    CascadeBenchCase& c = cases.emplace_back();
    c.name = name;
    c.spec = {.head_size = 128, .block_size = 16, .group_size = group_size};
    c.num_kv_heads = num_kv_heads;
    c.num_seqs = num_seqs;
    c.prefix_len = prefix_len;
    c.suffix_len = suffix_len;
  };
  add("GQA 32/8", 8, 4, 64, 8192, 512);
  add("GQA 32/8", 8, 4, 8, 8192, 512);
  add("GQA 32/8", 8, 4, 64, 1024, 512);
  add("GQA 64/8 (Llama-3.1-70B)", 8, 8, 64, 8192, 512);
  add("GQA 16/8", 8, 2, 64, 8192, 512);
  add("MHA 32/32", 32, 1, 64, 8192, 512);
  return cases;
}

}  // namespace pagejit
