// The logits of an indexer.
#include <algorithm>

#include "generator/arch.h"
#include "generator/indexer.h"
#include "generator/spec_text.h"

namespace pagejit {
namespace {

constexpr int kThreads = 128;
// So that staging q costs little beside the products: with 64 heads of 128 and 512 columns an
// eighth of the bytes that the keys take.
constexpr int kTilesPerWarp = 4;
// Rows share what is loaded and widened of the keys, up to this much shared memory, which leaves
// room for as many CTAs as registers do.
constexpr int kSharedForRows = 32 << 10;
constexpr int kMaxRows = 4;
// Keys in registers: a lane has head_size / 2 bytes of each tile of 16, of which two fit up to
// here.
constexpr int kMaxHeadSizeOfTwoTiles = 128;

std::string kernel_name(const IndexLogitsSpec& spec) {
  std::string name = "pagejit_index_logits_h" + std::to_string(spec.num_heads) + "_d" +
                     std::to_string(spec.head_size);
  if (spec.block_size != 0) name += "_b" + std::to_string(spec.block_size);
  if (spec.clean) name += "_clean";
  return name + debug_suffix(spec.debug);
}

Status check_multiple_in(std::string_view field, int value, int unit, int high) {
  if (value >= unit && value <= high && value % unit == 0) return {};
  return invalid_spec(std::string(field) + " " + std::to_string(value) +
                      ": must be a multiple of " + std::to_string(unit) + " in [" +
                      std::to_string(unit) + ", " + std::to_string(high) + "]");
}

}  // namespace

template <>
Status validate(const IndexLogitsSpec& spec) {
  if (Status s = check_multiple_in("num_heads", spec.num_heads, 8, 128); !s) return s;
  if (Status s = check_multiple_in("head_size", spec.head_size, 32, 256); !s) return s;
  return check_range("block_size", spec.block_size, 0, kMaxBlockSize);
}

template <>
Status supports(const IndexLogitsSpec& spec, const Target& target) {
  return plan(spec, target).status();
}

template <>
std::string canonical_text(const IndexLogitsSpec& spec) {
  return "index_logits" + text_field("num_heads", spec.num_heads) +
         text_field("head_size", spec.head_size) + text_field("block_size", spec.block_size) +
         text_switch("clean", spec.clean) + text_switch("debug", spec.debug);
}

Result<IndexLogitsConfig> plan(const IndexLogitsSpec& spec, const Target& target) {
  if (Status s = validate(spec); !s) return s;
  const Result<Arch> arch = arch_of(target);
  if (!arch) return arch.status();
  const int row_bytes = spec.num_heads * spec.head_size * 2;
  const int rows = std::clamp(kSharedForRows / row_bytes, 1, kMaxRows);
  // Beside q in f16 each row has its weights and its range; in units of 16 bytes.
  const int beside = rows * (spec.num_heads * 4 + 8);
  const int shared_bytes = rows * row_bytes + (beside + 15) / 16 * 16;
  if (shared_bytes > arch->shared_bytes_per_cta) {
    return Status(StatusCode::kUnsupported,
                  "num_heads " + std::to_string(spec.num_heads) + ": with head_size " +
                      std::to_string(spec.head_size) + " q takes " + std::to_string(shared_bytes) +
                      " bytes of shared memory; " + target.to_string() + " has " +
                      std::to_string(arch->shared_bytes_per_cta));
  }
  // Four lanes share a key.
  int vector = spec.head_size % 64 == 0 ? 16 : 8;
  const int64_t block_bytes = index_page_bytes(spec.block_size, spec.head_size, spec.head_size);
  while (block_bytes % vector != 0) vector /= 2;
  return IndexLogitsConfig{
      .spec = spec,
      .target = target,
      .constants = {.num_heads = spec.num_heads,
                    .head_size = spec.head_size,
                    .block_size = spec.block_size,
                    .vector_bytes = vector,
                    .token_tiles = spec.head_size <= kMaxHeadSizeOfTwoTiles ? 2 : 1,
                    .tiles_per_warp = kTilesPerWarp,
                    .rows_per_cta = rows,
                    .num_threads = kThreads,
                    .shared_bytes = shared_bytes,
                    .cleans = spec.clean,
                    .debug = spec.debug}};
}

EntryText entry_text(const IndexLogitsConfig& config) {
  const pagejit_shared::IndexLogitsConfig& c = config.constants;
  return {.file = "indexer/logits.cu.tmpl",
          .kernel_name = kernel_name(config.spec),
          .banner = banner("Logits of an indexer", canonical_text(config.spec)),
          .values = {{"num_heads", std::to_string(c.num_heads)},
                     {"head_size", std::to_string(c.head_size)},
                     {"block_size", std::to_string(c.block_size)},
                     {"vector_bytes", std::to_string(c.vector_bytes)},
                     {"token_tiles", std::to_string(c.token_tiles)},
                     {"tiles_per_warp", std::to_string(c.tiles_per_warp)},
                     {"rows_per_cta", std::to_string(c.rows_per_cta)},
                     {"num_threads", std::to_string(c.num_threads)},
                     {"shared_bytes", std::to_string(c.shared_bytes)},
                     {"cleans", bool_text(c.cleans)},
                     {"debug", bool_text(c.debug)},
                     {"kernel_name", kernel_name(config.spec)}},
          .switches = {{"PAGEJIT_UNPACK_E4M3", true},
                       {"PAGEJIT_FP8_CONVERT", has_float8_convert(config.target)}}};
}

}  // namespace pagejit
