// Tables of features: by type, with their tests, and with each other.
#include <functional>
#include <iterator>

#include "tests/docs/support_tables.h"

namespace pagejit::docs {
namespace {

constexpr Feature kFeatures[] = {
    {"causal=1", [](KernelSpec& s) { s.causality = Causality::kCausal; }, 'c',
     "`RaggedSweepTest.*`, `RaggedTest.*`"},
    {"causal=sequence", [](KernelSpec& s) { s.causality = Causality::kPerSequence; }, 'c',
     "`RaggedSweepTest.*`"},
    {"window", [](KernelSpec& s) { s.window = true; }, ' ',
     "`AttentionSweep.*`, `RaggedSweepTest.*`"},
    {"chunked", [](KernelSpec& s) { s.chunked = true; }, ' ', "`RaggedSweepTest.*`"},
    {"custom_mask", [](KernelSpec& s) { s.custom_mask = true; }, ' ', "`CustomMaskTest.*`"},
    {"bidirectional_ranges", [](KernelSpec& s) { s.bidirectional_ranges = true; }, ' ',
     "`BidirectionalRangesTest.*`"},
    {"block_sparse", [](KernelSpec& s) { s.block_sparse = true; }, ' ', "`BlockSparseSweepTest.*`"},
    {"soft_cap", [](KernelSpec& s) { s.soft_cap = true; }, ' ', "`AttentionSweep.*`"},
    {"alibi", [](KernelSpec& s) { s.alibi = true; }, ' ', "`AttentionSweep.*`"},
    {"qq_bias", [](KernelSpec& s) { s.qq_bias = true; }, ' ', "`QqBiasTest.*`"},
    {"sinks", [](KernelSpec& s) { s.sinks = true; }, ' ', "`AttentionSweep.*`"},
    {"table=csr", [](KernelSpec& s) { s.kv_table = KvTable::kCsr; }, 't', "`RaggedSweepTest.*`"},
    {"table=contiguous",
     [](KernelSpec& s) {
       s.kv_table = KvTable::kContiguous;
       s.block_size = 1;
     },
     't', "`RaggedSweepTest.*`"},
    {"layout=vllm", [](KernelSpec& s) { s.kv_layout = KvLayout::kVllm; }, 'l',
     "`PagedAttentionSweepTest.*`"},
    {"kv_alignment=4", [](KernelSpec& s) { s.kv_alignment = 4; }, ' ', "`ElementTest.*`"},
    {"latent", make_latent, ' ', "`LatentTest.*`, `MlaSweepTest.*`"},
    {"latent, table=slots",
     [](KernelSpec& s) {
       make_latent(s);
       s.kv_table = KvTable::kSlots;
     },
     't', "`LatentTest.*`, `TokenListDebugTest.*`"},
    {"latent, table=positions",
     [](KernelSpec& s) {
       make_latent(s);
       s.kv_table = KvTable::kPositions;
     },
     't', "`LatentTest.*`, `SparseAttentionTest.*`"},
    {"latent, layout=ds_mla",
     [](KernelSpec& s) {
       make_latent(s);
       s.kv_layout = KvLayout::kDsMla;
     },
     'l', "`LatentTest.*`, `MlaCacheTest.RowsOf656BytesAreWhatTheirTextSays`"},
    {"batch_invariant", [](KernelSpec& s) { s.batch_invariant = true; }, ' ',
     "`BatchInvarianceTest.*`"},
    {"debug", [](KernelSpec& s) { s.debug = true; }, ' ', "`DebugKernelTest.*`"},
    {"pdl", [](KernelSpec& s) { s.pdl = true; }, ' ', "`PdlTest.*`"},
};

// "all", "few, many", "-".
std::string queries_that(const std::function<bool(QueryLengths queries)>& holds) {
  std::vector<std::string> names;
  for (const QueryLengths queries : kQueries) {
    if (holds(queries)) names.emplace_back(kQueryNames[static_cast<size_t>(queries)]);
  }
  if (names.size() == std::size(kQueries)) return "all";
  return names.empty() ? "-" : join(names);
}

}  // namespace

std::span<const Feature> features() { return kFeatures; }

std::string feature_tests() {
  std::string text = "| feature | tests on the emulator |\n| --- | --- |\n";
  for (const Feature& feature : kFeatures) {
    text += "| " + std::string(feature.name) + " | " + feature.tests + " |\n";
  }
  return text;
}

std::string feature_table(const Target& target) {
  std::string text = "| feature |";
  std::string line = "| --- |";
  for (const DataType type : kDataTypes) {
    text += " " + std::string(data_type_name(type)) + " |";
    line += " --- |";
  }
  text += "\n" + line + "\n";
  for (const Feature& feature : kFeatures) {
    text += "| " + std::string(feature.name) + " |";
    for (const DataType type : kDataTypes) {
      text += " " + queries_that([&](QueryLengths queries) {
                KernelSpec spec = spec_of(type, queries);
                feature.apply(spec);
                return is_served(spec, target);
              }) +
              " |";
    }
    text += "\n";
  }
  return text;
}

std::string combination_table() {
  const Target target = *parse_target("sm_90a");
  std::string text = "| |";
  std::string line = "| --- |";
  for (size_t i = 0; i < std::size(kFeatures); ++i) {
    text += " " + std::to_string(i + 1) + " |";
    line += " --- |";
  }
  text += "\n" + line + "\n";
  for (size_t row = 0; row < std::size(kFeatures); ++row) {
    text += "| " + std::to_string(row + 1) + " " + kFeatures[row].name + " |";
    for (size_t column = 0; column < std::size(kFeatures); ++column) {
      if (column > row) {
        text += " |";
        continue;
      }
      const Feature& first = kFeatures[column];
      const Feature& second = kFeatures[row];
      if (column != row && first.choice != ' ' && first.choice == second.choice) {
        text += " / |";
        continue;
      }
      size_t served = 0;
      for (const QueryLengths queries : kQueries) {
        KernelSpec spec = spec_of(DataType::kBFloat16, queries);
        first.apply(spec);
        second.apply(spec);
        // Rows that hold their own scales are codes.
        if (spec.kv_layout == KvLayout::kDsMla) spec.kv_dtype = DataType::kFloat8E4m3;
        served += is_served(spec, target) ? 1 : 0;
      }
      text += served == 0 ? " - |" : (served == std::size(kQueries) ? " y |" : " p |");
    }
    text += "\n";
  }
  return text;
}

}  // namespace pagejit::docs
