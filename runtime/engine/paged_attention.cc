#include "pagejit/paged_attention.h"

#include <atomic>
#include <limits>
#include <mutex>
#include <utility>

#include "runtime/engine/argument_check.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

constexpr uintptr_t kVectorBytes = 16;  // what one copy moves
constexpr int kRowElements = 8;         // what rows of query may lie apart
constexpr int kMostGroup = 128;         // KernelSpec::group_size
constexpr int kMostSparse = 65536;      // BlockSparseArgs

Status unsupported(std::string message) {
  return Status(StatusCode::kUnsupported, std::move(message));
}

bool is_sparse(const PagedAttentionArgs& args) { return args.blocksparse_vert_stride > 1; }

bool has_scales(const KernelSpec& spec) { return data_type_bytes(spec.kv_dtype) == 1; }

Result<DataType> kv_dtype_of(const PagedAttentionArgs& args) {
  const std::string_view name = args.kv_cache_dtype;
  if (name == "auto") return args.dtype;
  if (name == "float16") return DataType::kFloat16;
  if (name == "bfloat16") return DataType::kBFloat16;
  if (name == "fp8" || name == "fp8_e4m3") return DataType::kFloat8E4m3;
  if (name == "fp8_e5m2") return DataType::kFloat8E5m2;
  return invalid(
      format("kv_cache_dtype \"{}\": legal are auto, float16, bfloat16, fp8, fp8_e4m3 and "
             "fp8_e5m2",
             name));
}

Status check_types(const PagedAttentionArgs& args, DataType kv_dtype) {
  if (args.dtype != DataType::kFloat16 && args.dtype != DataType::kBFloat16 &&
      args.dtype != DataType::kFloat32) {
    return unsupported(format("dtype {}: must be f16, bf16 or f32", data_type_name(args.dtype)));
  }
  if (data_type_bytes(kv_dtype) == 1 || args.dtype == kv_dtype ||
      args.dtype == DataType::kFloat32) {
    return {};
  }
  return unsupported(
      format("kv_cache_dtype {} with dtype {}: must be auto, or a type of 8 bits, or that of "
             "dtype",
             args.kv_cache_dtype, data_type_name(args.dtype)));
}

Status check_heads(const PagedAttentionArgs& args) {
  if (Status s = check_count("num_kv_heads", args.num_kv_heads, 1, kMaxGridYZ); !s) return s;
  const int64_t most = int64_t{args.num_kv_heads} * kMostGroup;
  if (args.num_heads >= 1 && args.num_heads <= most && args.num_heads % args.num_kv_heads == 0) {
    return {};
  }
  return invalid(format("num_heads {}: must be a multiple of num_kv_heads ({}), 1 to {} times",
                        args.num_heads, args.num_kv_heads, kMostGroup));
}

Result<KernelSpec> spec_of(const PagedAttentionArgs& args) {
  const Result<DataType> kv_dtype = kv_dtype_of(args);
  if (!kv_dtype) return kv_dtype.status();
  if (Status s = check_types(args, *kv_dtype); !s) return s;
  if (Status s = check_heads(args); !s) return s;
  KernelSpec spec;
  spec.q_dtype = spec.out_dtype = args.dtype;
  spec.kv_dtype = *kv_dtype;
  spec.head_size = args.head_size;
  spec.block_size = args.block_size;
  spec.group_size = args.num_heads / args.num_kv_heads;
  spec.kv_layout = KvLayout::kVllm;
  spec.alibi = args.alibi_slopes != nullptr;
  spec.block_sparse = is_sparse(args);
  if (Status s = validate(spec); !s) return s;
  return spec;
}

// Those of a launch, by the names of this interface.
Status check_pointers(const PagedAttentionArgs& args, const KernelSpec& spec) {
  const std::pair<const char*, const void*> vectors[] = {{"out", args.out},
                                                         {"query", args.query},
                                                         {"key_cache", args.key_cache},
                                                         {"value_cache", args.value_cache}};
  for (const auto& [name, pointer] : vectors) {
    if (Status s = check_pointer(name, pointer, kVectorBytes); !s) return s;
  }
  if (Status s = check_pointer("block_tables", args.block_tables, alignof(int32_t)); !s) return s;
  if (Status s = check_pointer("seq_lens", args.seq_lens, alignof(int32_t)); !s) return s;
  if (misaligned(args.alibi_slopes, alignof(float))) {
    return bad_pointer("alibi_slopes", args.alibi_slopes, alignof(float));
  }
  if (!has_scales(spec)) return {};
  if (Status s = check_pointer("k_scale", args.k_scale, alignof(float)); !s) return s;
  return check_pointer("v_scale", args.v_scale, alignof(float));
}

Status check_block_sparse(const PagedAttentionArgs& args) {
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  Status s = check_count("tp_rank", args.tp_rank, 0, kAny);
  if (s) s = check_count("blocksparse_local_blocks", args.blocksparse_local_blocks, 0, kAny);
  if (s) s = check_count("blocksparse_vert_stride", args.blocksparse_vert_stride, 0, kMostSparse);
  if (s) s = check_count("blocksparse_block_size", args.blocksparse_block_size, 1, kMostSparse);
  return s;
}

Status check_numbers(const PagedAttentionArgs& args, const KernelSpec& spec) {
  if (Status s = check_count("num_seqs", args.num_seqs, 0, kMaxGridYZ); !s) return s;
  if (args.max_num_blocks_per_seq < 0) {
    return invalid(
        format("max_num_blocks_per_seq {}: must not be negative", args.max_num_blocks_per_seq));
  }
  if (Status s = check_stride("q_stride", args.q_stride, kRowElements); !s) return s;
  const int kv_unit = static_cast<int>(kVectorBytes) / data_type_bytes(spec.kv_dtype);
  if (Status s = check_stride("kv_block_stride", args.kv_block_stride, kv_unit); !s) return s;
  if (Status s = check_stride("kv_head_stride", args.kv_head_stride, kv_unit); !s) return s;
  return is_sparse(args) ? check_block_sparse(args) : Status();
}

AttentionArgs launch_args(const PagedAttentionArgs& args, const KernelSpec& spec) {
  const int64_t head_size = args.head_size;
  const int64_t token = args.num_heads * head_size;
  const int64_t kv_head =
      args.kv_head_stride != 0 ? args.kv_head_stride : head_size * args.block_size;
  AttentionArgs launch;
  launch.q = args.query;
  launch.q_stride_token = args.q_stride != 0 ? args.q_stride : token;
  launch.q_stride_head = head_size;
  launch.k_cache = args.key_cache;
  launch.v_cache = args.value_cache;
  launch.k_strides.block = args.kv_block_stride != 0
                               ? args.kv_block_stride
                               : args.num_kv_heads * head_size * args.block_size;
  launch.k_strides.head = kv_head;
  launch.v_strides = launch.k_strides;
  if (has_scales(spec)) {
    launch.k_scale = args.k_scale;
    launch.v_scale = args.v_scale;
  }
  launch.block_table = args.block_tables;
  launch.block_table_stride = args.max_num_blocks_per_seq;
  launch.max_blocks_per_seq = args.max_num_blocks_per_seq;
  launch.seq_lens = args.seq_lens;
  launch.out = args.out;
  launch.out_stride_token = token;
  launch.out_stride_head = head_size;
  launch.block_sparse = {.local_blocks = args.blocksparse_local_blocks,
                         .vert_stride = args.blocksparse_vert_stride,
                         .block_size = args.blocksparse_block_size,
                         .head_sliding_step = args.blocksparse_head_sliding_step,
                         .tp_rank = args.tp_rank};
  launch.alibi_slopes = args.alibi_slopes;
  launch.num_seqs = args.num_seqs;
  launch.num_kv_heads = args.num_kv_heads;
  launch.scale = args.scale;
  launch.max_seq_len = args.max_seq_len;
  return launch;
}

}  // namespace

// A list that only grows, at its front: who walks it needs no lock.
class PagedAttention::Impl {
 public:
  explicit Impl(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  ~Impl() {
    const Entry* entry = first_.load();
    while (entry != nullptr) delete std::exchange(entry, entry->next);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<const Kernel*> kernel(const KernelSpec& spec, Stream stream) {
    if (const Kernel* known = find(spec); known != nullptr) return known;
    if (engine_ == nullptr)
      return invalid("engine is null: must be one that Engine::create() made");
    Result<Kernel> made = engine_->prepare(spec, /*device=*/-1, stream);
    if (!made) return made.status();
    const std::lock_guard lock(growth_);
    if (const Kernel* known = find(spec); known != nullptr) return known;
    const Entry* entry = new Entry{spec, std::move(made).value(), first_.load()};
    first_.store(entry, std::memory_order_release);
    return &entry->kernel;
  }

  // Null where there is none yet.
  const Kernel* any_kernel() const {
    const Entry* entry = first_.load(std::memory_order_acquire);
    return entry != nullptr ? &entry->kernel : nullptr;
  }

  Status launch(const PagedAttentionArgs& args, bool may_split, Stream stream) {
    const Result<KernelSpec> spec = spec_of(args);
    if (!spec) return spec.status();
    if (Status s = check_numbers(args, *spec); !s) return s;
    if (args.num_seqs == 0) return {};
    if (Status s = check_pointers(args, *spec); !s) return s;
    const Result<const Kernel*> kernel_of_spec = kernel(*spec, stream);
    if (!kernel_of_spec) return kernel_of_spec.status();
    AttentionArgs launch = launch_args(args, *spec);
    if (may_split) {
      launch.workspace = args.workspace;
      launch.workspace_bytes = args.workspace_bytes;
    } else {
      launch.num_splits = 1;
    }
    return (*kernel_of_spec)->launch(launch, stream);
  }

 private:
  struct Entry {
    KernelSpec spec;
    Kernel kernel;
    const Entry* next;
  };

  const Kernel* find(const KernelSpec& spec) const {
    for (const Entry* entry = first_.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next) {
      if (entry->spec == spec) return &entry->kernel;
    }
    return nullptr;
  }

  std::shared_ptr<Engine> engine_;
  std::atomic<const Entry*> first_ = nullptr;
  std::mutex growth_;
};

Result<KernelSpec> paged_attention_spec(const PagedAttentionArgs& args) {
  return guarded([&] { return spec_of(args); });
}

PagedAttention::PagedAttention(std::shared_ptr<Engine> engine)
    : impl_(std::make_unique<Impl>(std::move(engine))) {}
PagedAttention::~PagedAttention() = default;

Status PagedAttention::prepare(const PagedAttentionArgs& args) {
  return workspace_bytes(args).status();
}

Result<size_t> PagedAttention::workspace_bytes(const PagedAttentionArgs& args) {
  return guarded([&]() -> Result<size_t> {
    const Result<KernelSpec> spec = spec_of(args);
    if (!spec) return spec.status();
    const Result<const Kernel*> kernel = impl_->kernel(*spec, /*stream=*/nullptr);
    if (!kernel) return kernel.status();
    return (*kernel)->max_workspace_bytes();
  });
}

Status PagedAttention::init_workspace(void* workspace, size_t workspace_bytes, Stream stream) {
  const Kernel* kernel = impl_->any_kernel();
  if (kernel != nullptr) return kernel->workspace_init(workspace, workspace_bytes, stream);
  return guarded([] {
    return Status(StatusCode::kInvalidArgument,
                  "init_workspace before any kernel was prepared: call prepare() or "
                  "workspace_bytes() first");
  });
}

Status paged_attention_v1(PagedAttention& attention, const PagedAttentionArgs& args,
                          Stream stream) {
  return guarded([&] { return attention.impl_->launch(args, /*may_split=*/false, stream); });
}

Status paged_attention_v2(PagedAttention& attention, const PagedAttentionArgs& args,
                          Stream stream) {
  return guarded([&] { return attention.impl_->launch(args, /*may_split=*/true, stream); });
}

}  // namespace pagejit
