// The kernels around attention.
#include "pagejit/engine.h"
#include "tests/docs/support_tables.h"

namespace pagejit::docs {
namespace {

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

}  // namespace

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

}  // namespace pagejit::docs
