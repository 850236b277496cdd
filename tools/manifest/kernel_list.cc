#include "tools/manifest/kernel_list.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tuple>
#include <utility>

#include "generator/families.h"
#include "tools/models/config_reader.h"

namespace pagejit::manifest {
namespace {

// As many as there may be kernels: more shards would all be empty.
constexpr int kMaxShards = 100000;

auto order_of(const Target& target) {
  return std::make_tuple(target.is_host(), target.sm, static_cast<int>(target.variant));
}

bool read_number(std::string_view text, int* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end && *number >= 1 && *number <= kMaxShards;
}

}  // namespace

ListedKernel::ListedKernel(const AnySpec& any, const Target& for_target)
    : spec(any), target(for_target), text(text_of(spec)) {}

bool operator<(const ListedKernel& a, const ListedKernel& b) {
  if (const int order = a.text.compare(b.text); order != 0) return order < 0;
  return order_of(a.target) < order_of(b.target);
}

void sort_unique(std::vector<ListedKernel>* kernels) {
  std::stable_sort(kernels->begin(), kernels->end());
  kernels->erase(std::unique(kernels->begin(), kernels->end()), kernels->end());
}

std::string line_of(const ListedKernel& kernel) {
  return kernel.target.to_string() + " " + kernel.text;
}

std::string json_of(const ListedKernel& kernel) {
  // Neither text has a character that JSON would have escaped.
  return R"({"spec":")" + kernel.text + R"(","target":")" + kernel.target.to_string() + "\"}";
}

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos && read_number(text.substr(0, slash), &shard.index) &&
      read_number(text.substr(slash + 1), &shard.count) && shard.index <= shard.count) {
    return shard;
  }
  return Status(
      StatusCode::kInvalidArgument,
      "shard \"" + models::printable(text) +
          "\": must be I/N, part I of N, with 1 <= I <= N <= " + std::to_string(kMaxShards));
}

std::vector<ListedKernel> shard_of(const std::vector<ListedKernel>& sorted, const Shard& shard) {
  std::vector<ListedKernel> part;
  for (size_t i = static_cast<size_t>(shard.index) - 1; i < sorted.size();
       i += static_cast<size_t>(shard.count)) {
    part.push_back(sorted[i]);
  }
  return part;
}

ListDifference difference(const std::vector<ListedKernel>& first,
                          const std::vector<ListedKernel>& second) {
  ListDifference result;
  std::set_difference(first.begin(), first.end(), second.begin(), second.end(),
                      std::back_inserter(result.only_first));
  std::set_difference(second.begin(), second.end(), first.begin(), first.end(),
                      std::back_inserter(result.only_second));
  return result;
}

}  // namespace pagejit::manifest
