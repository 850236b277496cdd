#include "tests/docs/support_matrix.h"

#include <algorithm>
#include <functional>
#include <future>
#include <string_view>
#include <utility>

#include "generator/arch.h"
#include "pagejit/engine.h"

namespace pagejit {
namespace {

constexpr DataType kDataTypes[] = {DataType::kFloat16,    DataType::kBFloat16,   DataType::kFloat32,
                                   DataType::kFloat8E4m3, DataType::kFloat8E5m2, DataType::kInt8,
                                   DataType::kInt4};
constexpr QueryLengths kQueries[] = {QueryLengths::kOne, QueryLengths::kFew, QueryLengths::kMany,
                                     QueryLengths::kShared};
constexpr const char* kQueryNames[] = {"one", "few", "many", "shared"};
// Multiples of 8 up to the greatest head size.
constexpr int kHeadSizeStep = 8;
constexpr int kMaxHeadSize = 576;

struct HeadSizePair {
  int k;
  int v;
};
constexpr HeadSizePair kOwnValueSizes[] = {{192, 128}, {576, 512}};

// The variants of each architecture, the plain one first, and the emulator's target.
std::vector<std::vector<Target>> all_targets() {
  std::vector<std::vector<Target>> targets;
  for (const Arch& arch : known_archs()) {
    targets.push_back({{TargetKind::kCuda, arch.sm, TargetVariant::kPlain}});
    if (arch.has_family_variant) {
      targets.back().push_back({TargetKind::kCuda, arch.sm, TargetVariant::kFamily});
    }
    if (arch.has_exact_variant) {
      targets.back().push_back({TargetKind::kCuda, arch.sm, TargetVariant::kExact});
    }
  }
  targets.push_back({Target::host()});
  return targets;
}

std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

// Runs of neighbours as "8-256".
std::string ranges_of(const std::vector<int>& sizes, int step) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < sizes.size();) {
    size_t last = i;
    while (last + 1 < sizes.size() && sizes[last + 1] == sizes[last] + step) ++last;
    ranges.push_back(std::to_string(sizes[i]) +
                     (last == i ? "" : "-" + std::to_string(sizes[last])));
    i = last + 1;
  }
  return join(ranges);
}

// q and the result go with K and V, and scales where these need them.
KernelSpec spec_of(DataType kv_dtype, QueryLengths queries) {
  KernelSpec spec;
  spec.queries = queries;
  spec.kv_dtype = kv_dtype;
  spec.q_dtype = data_type_bits(kv_dtype) <= 8 ? DataType::kBFloat16 : kv_dtype;
  spec.out_dtype = spec.q_dtype;
  spec.token_scales = kv_dtype == DataType::kInt8 || kv_dtype == DataType::kInt4;
  return spec;
}

bool is_served(const KernelSpec& spec, const Target& target) {
  return supports(spec, target).is_ok();
}

// "8-256, 512, 192/128": head sizes, or those of K and V, for this group size.
std::string head_sizes(KernelSpec spec, const Target& target, int group_size) {
  spec.group_size = group_size;
  std::vector<int> sizes;
  for (int size = kHeadSizeStep; size <= kMaxHeadSize; size += kHeadSizeStep) {
    spec.head_size = size;
    if (is_served(spec, target)) sizes.push_back(size);
  }
  std::string text = ranges_of(sizes, kHeadSizeStep);
  for (const HeadSizePair& pair : kOwnValueSizes) {
    spec.head_size = pair.k;
    spec.head_size_v = pair.v;
    if (is_served(spec, target)) {
      text += (text.empty() ? "" : ", ") + std::to_string(pair.k) + "/" + std::to_string(pair.v);
    }
  }
  return text.empty() ? "-" : text;
}

// The architectures whose variants all answer alike are named once.
struct Answers {
  std::vector<std::string> names;
  std::vector<std::string> tables;
};

// A table for each set of targets that answer alike. all_variants: each variant is asked, else the
// plain one speaks for its architecture.
std::string by_targets(const std::vector<std::vector<Target>>& targets, bool all_variants,
                       std::string (*table_of)(const Target& target)) {
  std::vector<std::future<Answers>> pending;
  for (const std::vector<Target>& variants : targets) {
    pending.push_back(std::async([&variants, all_variants, table_of] {
      Answers answers;
      for (const Target& target : variants) {
        std::string table = table_of(target);
        if (!answers.tables.empty() && table == answers.tables.front()) continue;
        answers.names.push_back(target.to_string());
        answers.tables.push_back(std::move(table));
        if (!all_variants) break;
      }
      return answers;
    }));
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> tables;
  for (std::future<Answers>& future : pending) {
    const Answers answers = future.get();
    for (size_t i = 0; i < answers.tables.size(); ++i) {
      const auto same = std::ranges::find(tables, answers.tables[i],
                                          [](const auto& entry) { return entry.first; });
      if (same != tables.end()) {
        same->second.push_back(answers.names[i]);
      } else {
        tables.push_back({answers.tables[i], {answers.names[i]}});
      }
    }
  }
  std::string text;
  for (const auto& [table, names] : tables) text += "**" + join(names) + "**\n\n" + table + "\n";
  return text;
}

// ---- Head sizes by type ----

std::string head_size_table(const Target& target) {
  std::string text =
      "| K and V | queries | group size 1 | 8 | 64 | 128 |\n| --- | --- | --- | --- | --- | --- "
      "|\n";
  for (const DataType type : kDataTypes) {
    std::vector<std::pair<std::string, std::string>> rows;  // cells, queries
    for (const QueryLengths queries : kQueries) {
      std::string cells;
      for (const int group_size : {1, 8, 64, 128}) {
        cells += " " + head_sizes(spec_of(type, queries), target, group_size) + " |";
      }
      const char* name = kQueryNames[static_cast<size_t>(queries)];
      if (!rows.empty() && rows.back().first == cells) {
        rows.back().second += std::string(", ") + name;
      } else {
        rows.push_back({cells, name});
      }
    }
    for (const auto& [cells, names] : rows) {
      text += "| " + std::string(data_type_name(type)) + " | " + names + " |" + cells + "\n";
    }
  }
  return text;
}

// ---- Types of q and the result ----

std::string type_table(const Target& target) {
  std::string text = "| K and V | q | result | scales |\n| --- | --- | --- | --- |\n";
  for (const DataType type : kDataTypes) {
    KernelSpec spec = spec_of(type, QueryLengths::kFew);
    std::vector<std::string> of_q;
    std::vector<std::string> of_out;
    std::vector<std::string> scales;
    for (const DataType other : kDataTypes) {
      KernelSpec asked = spec;
      asked.q_dtype = other;
      if (is_served(asked, target)) of_q.emplace_back(data_type_name(other));
      asked = spec;
      asked.out_dtype = other;
      if (is_served(asked, target)) of_out.emplace_back(data_type_name(other));
    }
    for (const bool token_scales : {false, true}) {
      spec.token_scales = token_scales;
      if (!is_served(spec, target)) continue;
      scales.push_back(token_scales ? "token and head"
                                    : (data_type_bits(type) <= 8 ? "tensor, head" : "none"));
    }
    text += "| " + std::string(data_type_name(type)) + " | " + (of_q.empty() ? "-" : join(of_q)) +
            " | " + (of_out.empty() ? "-" : join(of_out)) + " | " +
            (scales.empty() ? "-" : join(scales)) + " |\n";
  }
  return text;
}

// ---- Features ----

struct Feature {
  const char* name;  // as in the canonical text
  void (*apply)(KernelSpec& spec);
  char choice;  // features of one letter exclude each other by setting one field; ' ': a switch
  const char* tests;
};

void make_latent(KernelSpec& spec) {
  spec.latent = true;
  spec.head_size = 576;  // kv_lora_rank 512 and qk_rope_head_dim 64, DeepSeek's
  spec.head_size_v = 512;
}

// Tests of one row: `Suite.Name`, "*" for any.
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

// ---- The kernels around attention ----

template <class Spec>
std::string targets_of(const Spec& spec, const std::vector<std::vector<Target>>& targets) {
  std::vector<std::string> names;
  size_t refused = 0;
  for (const std::vector<Target>& variants : targets) {
    std::vector<std::string> served;
    for (const Target& target : variants) {
      if (supports(spec, target)) served.push_back(target.to_string());
    }
    refused += variants.size() - served.size();
    if (served.size() == variants.size()) served.resize(1);
    names.insert(names.end(), served.begin(), served.end());
  }
  if (refused == 0) return "all";
  return names.empty() ? "-" : join(names);
}

std::string family_table(const std::vector<std::vector<Target>>& targets) {
  struct Row {
    std::string spec;
    std::string targets;
    const char* tests;
  };
  std::vector<Row> rows;
  const auto add = [&](const auto& spec, const char* tests) {
    rows.push_back({canonical_text(spec), targets_of(spec, targets), tests});
  };
  add(MergeStatesSpec{}, "`MergeStatesTest.*`");
  add(MergeStatesSpec{.pdl = true}, "`PdlTest.MergesAndCacheWritesAreRight`");
  add(CacheWriteSpec{}, "`CacheWriteTest.*`");
  for (const DataType type : {DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
    add(CacheWriteSpec{.kv_dtype = type, .scale = KvScale::kTensor}, "`CacheWriteTest.*`");
  }
  for (const DataType type : {DataType::kInt8, DataType::kInt4}) {
    add(CacheWriteSpec{.kv_dtype = type, .scale = KvScale::kTokenHead},
        "`CacheWriteTest.ScalesPerTokenAndHeadAreFoundAndWritten`");
  }
  add(CacheWriteSpec{.rope = RopeStyle::kNeox, .rotary_dim = 128},
      "`CacheWriteTest.KeysAndQueriesAreRotated`");
  for (const MlaFormat format : {MlaFormat::kPlain, MlaFormat::kE4m3, MlaFormat::kDsMla}) {
    add(MlaCacheWriteSpec{.format = format}, "`MlaCacheTest.*`");
  }
  add(CopyBlocksSpec{}, "`CacheOpsTest.BlocksAreCopied`");
  add(GatherCacheSpec{}, "`CacheOpsTest.SequencesAreGathered`");
  add(ConvertFloat8Spec{}, "`CacheOpsTest.EightBitFloatsAreConverted`");
  add(IndexKeyWriteSpec{}, "`IndexKeysTest.KeysAreQuantised`");
  add(IndexKeyGatherSpec{}, "`IndexKeysTest.KeysAreGathered`");
  add(IndexLogitsSpec{}, "`IndexLogitsTest.*`");
  add(TopKSpec{}, "`TopKTest.*`");
  add(CascadeSpec{}, "`CascadeCaseTest.*`, `CascadeTest.*`");
  SparseAttentionSpec sparse;
  make_latent(sparse.attention);
  sparse.attention.block_size = 64;  // as DeepSeek's pages
  sparse.attention.group_size = 128;
  sparse.attention.kv_table = KvTable::kPositions;
  add(sparse, "`SparseAttentionTest.*`");

  std::string text = "| spec | targets | tests on the emulator |\n| --- | --- | --- |\n";
  for (const Row& row : rows) {
    text += "| " + row.spec + " | " + row.targets + " | " + row.tests + " |\n";
  }
  return text;
}

}  // namespace

std::string support_heading(const std::vector<std::string>& gpu_results) {
  std::string text =
      "# What is served\n\n"
      "Generated from the validator (`supports()`) by `tests/docs/support_matrix_test`; "
      "`PAGEJIT_UPDATE_DOCS=1` writes it anew. A cell says what\n"
      "`supports()` answers with all else at its default (bf16 or K's type for q and the result, "
      "head "
      "size 128, block size 16, group size 1);\n"
      "`pagejit explain` answers for any other spec, with the rule that it breaks. A target stands "
      "for its variants `a` and `f` too.\n\n";

  text += "## Where it ran\n\n";
  if (gpu_results.empty()) {
    text +=
        "**Nothing here has run on a GPU.** Results stand on the CPU emulator, which runs the text "
        "that NVRTC compiles, and on what NVRTC and ptxas\n"
        "report for each target.\n\n";
  } else {
    text += "On a GPU, by the records in `tools/bench/results/`: " + join(gpu_results) +
            ". All else stands on the CPU emulator and on what NVRTC and ptxas report.\n\n";
  }
  text +=
      "| targets | compiled by NVRTC and ptxas, without spills | run on the emulator, with the "
      "tiles "
      "of that target | on a GPU |\n| --- | --- | --- | --- |\n";
  const std::string on_gpu = gpu_results.empty() ? "never" : "see above";
  text += "| sm_75 | `TuringMatrixTest.*` | `TuringTest.*` | " + on_gpu + " |\n";
  text +=
      "| sm_80 and later | `CompileMatrixTest.*`, `HeadSizeMatrixTest.*`, `FeatureMatrixTest.*`, "
      "`FamilyMatrixTest.*`, `SpecSampleTest.*` | "
      "`AttentionOnEmulatorTest.EveryArchitecturesConfigurationPasses`; the sweeps take sm_90's "
      "| " +
      on_gpu + " |\n";
  text += "| sm_90 and later, pdl | `PdlMatrixTest.*` | `PdlTest.*` | " + on_gpu + " |\n";
  text += "| host (the emulator) | | all tests below | not its purpose |\n\n";

  return text;
}

std::string support_tables() {
  const std::vector<std::vector<Target>> targets = all_targets();
  std::string text =
      "## Head sizes of attention\n\n"
      "Elements per head of K, or of K and V (`192/128`), by type, kind of queries and query heads "
      "per KV head; int8 and int4 with a scale per token and\n"
      "head. Tests: `ElementTest.*` (each type and each end of the head sizes), "
      "`AttentionSweep.*`, `RaggedSweepTest.*`, `SpecSweepTest.*`.\n\n";
  text += by_targets(targets, false, head_size_table);

  text +=
      "## Types of q and of the result\n\n"
      "Each type of one row goes with each of the others. Tests: `ElementTest.*`.\n\n";
  text += by_targets(targets, false, type_table);

  text +=
      "## Features by type of K and V\n\n"
      "A cell names the kinds of queries that the feature is served for; `all`: one, few, many and "
      "shared. `latent` and its forms have head sizes 576 and 512.\n\n";
  text += by_targets(targets, true, feature_table);

  text += "| feature | tests on the emulator |\n| --- | --- |\n";
  for (const Feature& feature : kFeatures) {
    text += "| " + std::string(feature.name) + " | " + feature.tests + " |\n";
  }
  text +=
      "\n## Features together\n\n"
      "For bf16 on sm_90a: `y` both for all kinds of queries, `p` for some kinds, `-` for none, "
      "`/` one or the other (layout=ds_mla: with codes\n"
      "of e4m3). "
      "`FeatureMatrixTest.*` compiles pairs, `SpecSweepTest.*` runs legal\n"
      "specs at random, `SpecSpaceTest.*` walks the validator over every pair.\n\n";
  text += combination_table();

  text +=
      "\n## The kernels around attention\n\n"
      "One spec of each kind; their headers have the limits of each field.\n\n";
  text += family_table(targets);
  return text;
}

}  // namespace pagejit
