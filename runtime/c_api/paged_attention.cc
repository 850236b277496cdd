// vLLM's entry points.
#include "pagejit/paged_attention.h"

#include "runtime/c_api/families.h"
#include "runtime/c_api/family.h"

namespace pagejit::c_api {
Status to_cpp(const pagejit_paged_attention_args* from, PagedAttentionArgs* to) {
  pagejit_paged_attention_args copy;
  Status refusal;
  const pagejit_paged_attention_args* known =
      open_struct("pagejit_paged_attention_args", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  if (Status s = need(known->kv_cache_dtype, "kv_cache_dtype"); !s) return s;
  Fields fields("pagejit_paged_attention_args");
  to->out = known->out;
  to->workspace = known->workspace;
  to->workspace_bytes = known->workspace_bytes;
  to->query = known->query;
  to->key_cache = known->key_cache;
  to->value_cache = known->value_cache;
  to->num_kv_heads = known->num_kv_heads;
  to->scale = known->scale;
  to->block_tables = known->block_tables;
  to->seq_lens = known->seq_lens;
  to->block_size = known->block_size;
  to->max_seq_len = known->max_seq_len;
  to->alibi_slopes = known->alibi_slopes;
  to->k_scale = known->k_scale;
  to->v_scale = known->v_scale;
  to->tp_rank = known->tp_rank;
  to->blocksparse_local_blocks = known->blocksparse_local_blocks;
  to->blocksparse_vert_stride = known->blocksparse_vert_stride;
  to->blocksparse_block_size = known->blocksparse_block_size;
  to->blocksparse_head_sliding_step = known->blocksparse_head_sliding_step;
  to->dtype = fields.enumerator("dtype", known->dtype, DataType::kInt4);
  to->num_seqs = known->num_seqs;
  to->num_heads = known->num_heads;
  to->head_size = known->head_size;
  to->max_num_blocks_per_seq = known->max_num_blocks_per_seq;
  to->q_stride = known->q_stride;
  to->kv_block_stride = known->kv_block_stride;
  to->kv_head_stride = known->kv_head_stride;
  to->kv_cache_dtype = known->kv_cache_dtype;
  return fields.status();
}

namespace {

pagejit_paged_attention_args default_paged_args() {
  const PagedAttentionArgs defaults;
  pagejit_paged_attention_args args = {};
  args.struct_size = sizeof args;
  args.block_size = defaults.block_size;
  args.kv_cache_dtype = "auto";
  args.blocksparse_block_size = defaults.blocksparse_block_size;
  args.dtype = static_cast<int32_t>(defaults.dtype);
  return args;
}

// Calls `function` with the object and the arguments.
template <class Function>
pagejit_status with_attention(const pagejit_paged_attention* attention,
                              const pagejit_paged_attention_args* args, pagejit_error* error,
                              Function&& function) noexcept {
  using Object = std::unique_ptr<PagedAttention>;
  return call(error, [&] {
    return with<Object>(Kind::kPagedAttention, attention, [&](Object& object) -> Status {
      PagedAttentionArgs known;
      if (Status s = to_cpp(args, &known); !s) return s;
      return function(*object, known);
    });
  });
}

}  // namespace
}  // namespace pagejit::c_api

using pagejit::PagedAttention;
using pagejit::PagedAttentionArgs;
using pagejit::Result;
using pagejit::Status;
using pagejit::c_api::AttentionFamily;
using pagejit::c_api::call;
using pagejit::c_api::Kind;
using pagejit::c_api::need;
using pagejit::c_api::with_attention;

pagejit_status pagejit_paged_attention_args_init(pagejit_paged_attention_args* args,
                                                 size_t struct_size) {
  return pagejit::c_api::init_struct(args, struct_size, pagejit::c_api::default_paged_args());
}

pagejit_status pagejit_paged_attention_spec(const pagejit_paged_attention_args* args,
                                            pagejit_kernel_spec* spec, pagejit_error* error) {
  return call(error, [&]() -> Status {
    PagedAttentionArgs known;
    if (Status s = pagejit::c_api::to_cpp(args, &known); !s) return s;
    if (Status s = pagejit::c_api::check_output("pagejit_kernel_spec", spec); !s) return s;
    const Result<pagejit::KernelSpec> found = pagejit::paged_attention_spec(known);
    if (!found) return found.status();
    pagejit::c_api::fill(spec, AttentionFamily::to_c(*found));
    return {};
  });
}

pagejit_status pagejit_paged_attention_create(pagejit_engine* engine,
                                              pagejit_paged_attention** attention,
                                              pagejit_error* error) {
  using pagejit::c_api::EngineObject;
  return call(error, [&] {
    return pagejit::c_api::with<EngineObject>(
        Kind::kEngine, engine, [&](const EngineObject& object) -> Status {
          if (Status s = need(attention, "attention"); !s) return s;
          return pagejit::c_api::hand_out(
              Kind::kPagedAttention, std::make_unique<PagedAttention>(object.engine), attention);
        });
  });
}

pagejit_status pagejit_paged_attention_destroy(pagejit_paged_attention* attention,
                                               pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kPagedAttention, attention, error);
}

pagejit_status pagejit_paged_attention_prepare(pagejit_paged_attention* attention,
                                               const pagejit_paged_attention_args* args,
                                               pagejit_error* error) {
  return with_attention(attention, args, error,
                        [](PagedAttention& object, const PagedAttentionArgs& known) {
                          return object.prepare(known);
                        });
}

pagejit_status pagejit_paged_attention_workspace_bytes(pagejit_paged_attention* attention,
                                                       const pagejit_paged_attention_args* args,
                                                       size_t* bytes, pagejit_error* error) {
  return with_attention(attention, args, error,
                        [&](PagedAttention& object, const PagedAttentionArgs& known) -> Status {
                          if (Status s = need(bytes, "bytes"); !s) return s;
                          const Result<size_t> found = object.workspace_bytes(known);
                          if (!found) return found.status();
                          *bytes = *found;
                          return {};
                        });
}

pagejit_status pagejit_paged_attention_init_workspace(pagejit_paged_attention* attention,
                                                      void* workspace, size_t workspace_bytes,
                                                      pagejit_stream stream, pagejit_error* error) {
  using Object = std::unique_ptr<PagedAttention>;
  return call(error, [&] {
    return pagejit::c_api::with<Object>(Kind::kPagedAttention, attention, [&](Object& object) {
      return object->init_workspace(workspace, workspace_bytes, stream);
    });
  });
}

pagejit_status pagejit_paged_attention_v1(pagejit_paged_attention* attention,
                                          const pagejit_paged_attention_args* args,
                                          pagejit_stream stream, pagejit_error* error) {
  return with_attention(attention, args, error,
                        [&](PagedAttention& object, const PagedAttentionArgs& known) {
                          return pagejit::paged_attention_v1(object, known, stream);
                        });
}

pagejit_status pagejit_paged_attention_v2(pagejit_paged_attention* attention,
                                          const pagejit_paged_attention_args* args,
                                          pagejit_stream stream, pagejit_error* error) {
  return with_attention(attention, args, error,
                        [&](PagedAttention& object, const PagedAttentionArgs& known) {
                          return pagejit::paged_attention_v2(object, known, stream);
                        });
}
