// KernelSpec: what is asked of a kernel, only what changes its code. Everything that changes from
// call to call (lengths, counts, strides, pointers, the softmax scale) is a launch argument
// (launch.h). Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pagejit/export.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// Which of them a field may hold stands with the field. The two floating-point formats of 8 bits
// are those of the OCP 8-bit floating point specification (OFP8): e4m3 has no infinity, and its
// greatest value is 448.
enum class DataType : uint8_t {
  kFloat16 = 0,
  kBFloat16 = 1,
  kFloat32 = 2,
  kFloat8E4m3 = 3,  // finite, NaN is 0x7f and 0xff
  kFloat8E5m2 = 4,
  kInt8 = 5,
  // Two's complement, -8 to 7; two in a byte, the element of even index in its low half.
  kInt4 = 6,
};

// "f16", "bf16", "f32", "fp8_e4m3", "fp8_e5m2", "int8", "int4".
PAGEJIT_EXPORT std::string_view data_type_name(DataType type);
// Accepts those, and fp16, float16, half; bfloat16; fp32, float32, float; fp8, e4m3, float8_e4m3fn;
// e5m2, float8_e5m2; int8; int4. kInvalidArgument otherwise.
PAGEJIT_EXPORT Result<DataType> parse_data_type(std::string_view text);
// Bytes of an element; of int4, of two.
constexpr int data_type_bytes(DataType type) {
  if (type == DataType::kFloat32) return 4;
  return type == DataType::kFloat16 || type == DataType::kBFloat16 ? 2 : 1;
}
constexpr int data_type_bits(DataType type) {
  return type == DataType::kInt4 ? 4 : 8 * data_type_bytes(type);
}

// How many query tokens the sequences of a launch have.
enum class QueryLengths : uint8_t {
  kOne = 0,  // one each: decode
  kFew = 1,  // any numbers, 0 among them, mostly a few: speculative decode, decode in a mixed batch
  kMany = 2,  // any numbers, mostly many: prefill, chunked prefill
  // Any numbers, mostly those of several sequences over KV tokens that they share (cascade.h). As
  // few reads of the keys as registers allow: the tallest tiles of rows; and each tile is split.
  kShared = 3,
};

// Which keys a query token sees where there may be several; the last query token of a sequence
// stands at its last KV token.
enum class Causality : uint8_t {
  kNone = 0,         // all keys of the sequence
  kCausal = 1,       // those up to its own position
  kPerSequence = 2,  // one or the other, by a flag per sequence
};

// How the KV tokens of a sequence are found.
enum class KvTable : uint8_t {
  kBlocks = 0,      // AttentionArgs::block_table, a row per sequence, and seq_lens
  kCsr = 1,         // kv_indptr, kv_indices, kv_last_block_len: rows of any length, one by one
  kContiguous = 2,  // kv_start_loc: no blocks, the tokens of all sequences follow each other
  // AttentionArgs::token_lists: each query token has a list of the tokens it sees (sparse MLA), by
  // their slots in the cache or by their positions in the sequence.
  kSlots = 3,
  kPositions = 4,
};

// Where the elements of a KV block lie.
enum class KvLayout : uint8_t {
  // head_size elements of a token and head follow each other; blocks, tokens and heads are
  // anywhere,
  // by KvStrides (NHD, HND, interleaved, ...).
  kRows = 0,
  // vLLM's PagedAttention: K [num_blocks, num_kv_heads, head_size / x, block_size, x] with 16 bytes
  // in x elements, V [num_blocks, num_kv_heads, head_size, block_size]; blocks and heads are
  // anywhere, by KvStrides.
  kVllm = 1,
  // The rows of kDsMlaRowBytes that vLLM calls fp8_ds_mla (DeepSeek-V3.2's sparse attention): 512
  // codes of e4m3, 4 f32, each the scale of 128 of them, and 64 bf16; blocks and tokens are
  // anywhere, by KvStrides, which count bytes. For KernelSpec::latent alone.
  kDsMla = 2,
};
// Bytes of a row of KvLayout::kDsMla.
inline constexpr int kDsMlaRowBytes = 656;

// Paged attention.
struct KernelSpec {
  QueryLengths queries = QueryLengths::kOne;
  DataType q_dtype = DataType::kBFloat16;
  // f16, bf16, f32, fp8_e4m3, fp8_e5m2, or int8 or int4 with token_scales. Those of 8 and 4 bits
  // have scales (AttentionArgs::k_scale) and are computed in f16; with f16 or bf16, q_dtype is the
  // same or f32, with f32 it is f32. q_dtype may be fp8_e4m3 where this has 8 or 4 bits. f32 keeps
  // the accuracy of float32 throughout, at several times the instructions, and needs sm_80.
  DataType kv_dtype = DataType::kBFloat16;
  // f16, bf16, f32, or fp8_e4m3 with a scale (AttentionArgs::out_scale), whatever the others are.
  DataType out_dtype = DataType::kBFloat16;
  // Elements per head of q and K, and of V and out unless head_size_v says otherwise: a multiple of
  // 8 in [8, 256], or 512; with a head_size_v also 576. At most 256 where kv_dtype is f32. With
  // latent a multiple of 16 in [16, 576].
  int head_size = 128;
  // Elements per head of V and out: 0 or head_size for the same, 128 where head_size is 192, 512
  // where it is 576. With latent any multiple of 16 up to head_size and 512.
  int head_size_v = 0;
  int block_size = 16;  // tokens per KV block: [1, 65536]
  int group_size = 1;   // query heads per KV head: [1, 128]
  // Must be kNone where queries is kOne: a single query token sees all keys.
  Causality causality = Causality::kNone;
  // kContiguous needs block_size 1; kSlots and kPositions need latent, and queries to be one, since
  // each query token has a list of its own, however many its sequence has.
  KvTable kv_table = KvTable::kBlocks;
  // kVllm needs block_size to be a multiple of 8, and head_size of x; not with int4. kDsMla needs
  // latent, head_size 576, head_size_v 512, kv_dtype fp8_e4m3 and q_dtype bf16, and has no scales
  // but those in its rows. Products with codes are computed in f16, the rotated part and V in bf16.
  KvLayout kv_layout = KvLayout::kRows;
  // V is the first head_size_v elements of K's rows, as in the cache of multi-head latent attention
  // (MLA), whose rows are a latent vector of kv_lora_rank elements (head_size_v) and the
  // qk_rope_head_dim rotated ones (the rest of head_size): one KV head, all query heads in its
  // group. A row is read once for both. The result is in the latent space. From sm_80 on; f16,
  // bf16, fp8_e4m3 or fp8_e5m2 in rows; not with token_scales, custom_mask or block_sparse.
  bool latent = false;
  // K and V have a scale for each token and KV head; kv_dtype has 8 or 4 bits, kv_layout is kRows.
  bool token_scales = false;
  // What the pointers and strides of K and V are multiples of, in bytes: 16, 8 or 4. Rows are
  // copied by as many bytes at a time, as far as these divide their size; 4 takes four times the
  // instructions of 16. For rows with their scales in line: their own bytes and 4 from one to the
  // next.
  int kv_alignment = 16;
  bool window = false;       // a sliding window: AttentionArgs::window_left and window_right hold
  bool chunked = false;      // chunked-local attention: AttentionArgs::chunk_size holds
  bool custom_mask = false;  // a bit for each query token and key, AttentionArgs::custom_mask
  // Query tokens in a range of positions see all of it, AttentionArgs::bidirectional_ranges. Must
  // be false where block_sparse is set. Changes nothing where all keys are seen anyway.
  bool bidirectional_ranges = false;
  bool block_sparse = false;  // only some blocks of keys, AttentionArgs::block_sparse
  bool soft_cap = false;      // scores become soft_cap * tanh(scores / soft_cap)
  bool alibi = false;    // a bias that is linear in the distance, by AttentionArgs::alibi_slopes
  bool qq_bias = false;  // a bias for the keys of a sequence's query tokens, AttentionArgs::qq_bias
  bool sinks = false;    // one more logit per head without a value, AttentionArgs::sinks
  // A query token's result is the same to the bit whatever else is in the batch, wherever its
  // blocks lie, and whether it is alone or in a chunk of many: the KV tokens are divided at fixed
  // places, not by the number of CTAs. For all launches of a model, decode too, one spec with few
  // or many queries.
  bool batch_invariant = false;
  bool debug = false;  // check every block id, length and the workspace on the device, report the
                       // first bad one
  // Programmatic dependent launch, from sm_90 on: the kernel may be brought onto the SMs while the
  // one before it in the stream still runs. It waits for that one's end before it touches memory,
  // and lets the next kernel come as early. A kernel of another library before it that is launched
  // in this way must wait likewise (griddepcontrol.wait).
  bool pdl = false;

  bool operator==(const KernelSpec&) const = default;
};

// Elements per head of V and out.
constexpr int value_head_size(const KernelSpec& spec) {
  return spec.head_size_v == 0 ? spec.head_size : spec.head_size_v;
}

// Bytes that K and V of a token and KV head take in the cache, without the scales of token_scales.
constexpr int kv_token_bytes(const KernelSpec& spec) {
  if (spec.kv_layout == KvLayout::kDsMla) return kDsMlaRowBytes;
  const int64_t elements = int64_t{spec.head_size} + (spec.latent ? 0 : value_head_size(spec));
  return static_cast<int>(elements * data_type_bits(spec.kv_dtype) / 8);
}

// Every rule answers with the field, its value and what is legal (kInvalidArgument, or kUnsupported
// for what a later version may serve).
PAGEJIT_EXPORT Status validate(const KernelSpec& spec);

// Whether a kernel for `spec` can be made for `target`: kInvalidArgument, kUnsupported. Pure: needs
// no NVRTC, no driver, no GPU.
PAGEJIT_EXPORT Status supports(const KernelSpec& spec, const Target& target);

// One line that identifies the spec, e.g. "decode q=bf16 kv=bf16 out=bf16 head_size=128
// block_size=16 group_size=4". The first word is decode, few, many or shared (queries); "causal=1"
// (or "causal=sequence"), "table=csr" (or "table=contiguous", "table=slots", "table=positions"),
// "layout=vllm" (or "layout=ds_mla"), "head_size_v=", "kv_alignment=" and the switches latent,
// token_scales, window, chunked, custom_mask, bidirectional_ranges, block_sparse, soft_cap, alibi,
// qq_bias, sinks, batch_invariant, debug and pdl ("window=1") follow where they are set. Specs that
// mean the same have the same text; others differ.
PAGEJIT_EXPORT std::string canonical_text(const KernelSpec& spec);

// The spec of a family of kernels beside attention. What is said above of a KernelSpec holds for
// each; these are templates so that a braced list of fields still means a KernelSpec.
template <class Spec>
concept KernelFamily = requires {
  typename Spec::Handle;
};
template <KernelFamily Spec>
Status validate(const Spec& spec);
template <KernelFamily Spec>
Status supports(const Spec& spec, const Target& target);
template <KernelFamily Spec>
std::string canonical_text(const Spec& spec);

// The inverse of a KernelSpec's text; fields may come in any order, absent ones keep their
// defaults, unknown or repeated ones are kInvalidArgument. The result is validated.
PAGEJIT_EXPORT Result<KernelSpec> parse_spec(std::string_view text);

}  // namespace pagejit
