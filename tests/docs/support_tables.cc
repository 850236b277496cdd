#include "tests/docs/support_tables.h"

#include <utility>

#include "generator/arch.h"

namespace pagejit::docs {
namespace {

// Multiples of 8 up to the greatest head size.
constexpr int kHeadSizeStep = 8;
constexpr int kMaxHeadSize = 576;

struct HeadSizePair {
  int k;
  int v;
};
constexpr HeadSizePair kOwnValueSizes[] = {{192, 128}, {576, 512}};

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

}  // namespace

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

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

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

void make_latent(KernelSpec& spec) {
  spec.latent = true;
  spec.head_size = 576;  // kv_lora_rank 512 and qk_rope_head_dim 64, DeepSeek's
  spec.head_size_v = 512;
}

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

}  // namespace pagejit::docs
