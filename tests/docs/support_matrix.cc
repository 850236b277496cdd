#include "tests/docs/support_matrix.h"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <utility>

#include "tests/docs/support_tables.h"

namespace pagejit::docs {
namespace {

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
        "that NVRTC compiles, with functions of its own in\n"
        "place of those of PTX, and on what NVRTC and ptxas report for each target.\n\n";
  } else {
    text += "On a GPU, by the records in `tools/bench/results/`: " + join(gpu_results) +
            ". All else stands on the CPU emulator and on what NVRTC and ptxas report.\n\n";
  }
  text +=
      "| targets | compiled by NVRTC and ptxas, without spills | run on the emulator, with the "
      "tiles "
      "of that target | on a GPU |\n| --- | --- | --- | --- |\n";
  // Names of records begin with the target that ran: "sm_90_h200_2026-11-23.json".
  const auto on_gpu = [&](int first, int last) {
    std::string names;
    for (const std::string& name : gpu_results) {
      const int sm = name.starts_with("sm_") ? std::atoi(name.c_str() + 3) : 0;
      if (sm >= first && sm <= last) names += (names.empty() ? "" : ", ") + name;
    }
    return names.empty() ? "never" : names;
  };
  text += "| sm_75 | `TuringMatrixTest.*` | `TuringTest.*` | " + on_gpu(75, 75) + " |\n";
  text +=
      "| sm_80 and later | `CompileMatrixTest.*`, `HeadSizeMatrixTest.*`, `FeatureMatrixTest.*`, "
      "`FamilyMatrixTest.*`, `SpecSampleTest.*` | "
      "`AttentionOnEmulatorTest.EveryArchitecturesConfigurationPasses`; the sweeps take sm_90's "
      "| " +
      on_gpu(80, 999) + " |\n";
  text += "| sm_90 and later, pdl | `PdlMatrixTest.*` | `PdlTest.*` | " + on_gpu(90, 999) + " |\n";
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
      "shared. `latent` and its forms have head sizes 576 and 512.\n"
      "`FeatureTypeTest.*` runs the kernel of each cell with sm_90a's tiles, of each kind of "
      "queries with `--all`; the tests below the tables look at a feature closely.\n\n";
  text += by_targets(targets, true, feature_table);

  text += feature_tests();
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

}  // namespace pagejit::docs
