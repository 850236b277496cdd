#include "runtime/metadata.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "runtime/format.h"
#include "runtime/text_reader.h"

namespace pagejit {
namespace {

constexpr std::string_view kFirstLine = "pagejit-kernel 3\n";
constexpr std::string_view kLastLine = "\nend\n";

// Applies `visit(name, field)` to every field before the log, in the order of the grammar; used to
// write and to read, so that the two cannot differ.
template <class Metadata, class Visitor>
void for_each_field(Metadata& metadata, Visitor&& visit) {
  visit("spec", metadata.spec);
  visit("target", metadata.target);
  visit("symbol", metadata.symbol);
  visit("abi", metadata.abi);
  visit("compiler", metadata.compiler);
  visit("threads_per_cta", metadata.threads_per_cta);
  visit("dynamic_shared_bytes", metadata.dynamic_shared_bytes);
  visit("pdl", metadata.pdl);
  visit("static_shared_bytes", metadata.static_shared_bytes);
  visit("registers", metadata.registers);
  visit("spill_store_bytes", metadata.spill_store_bytes);
  visit("spill_load_bytes", metadata.spill_load_bytes);
  visit("stack_bytes", metadata.stack_bytes);
  visit("compile_us", metadata.compile_us);
}

}  // namespace

std::string encode_metadata(const KernelMetadata& metadata) {
  std::string blob(kFirstLine);
  for_each_field(metadata, [&]<class Value>(const char* name, const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      blob += format("{}={}\n", name, value);
    } else {
      blob += format("{}={}\n", name, one_line(value));
    }
  });
  const std::string_view log = std::string_view(metadata.log).substr(0, kMaxMetadataLog);
  blob += format("log={}\n", log.size());
  blob += log;
  blob += kLastLine;
  return blob;
}

Result<KernelMetadata> parse_metadata(std::string_view blob) {
  KernelMetadata metadata;
  TextReader reader("kernel metadata", blob);
  reader.expect(kFirstLine);
  for_each_field(metadata, [&]<class Value>(const char* name, Value& value) {
    reader.expect(format("{}=", name));
    if constexpr (std::is_integral_v<Value>) {
      value = reader.read_number<Value>('\n');
    } else {
      value = reader.read_until('\n');
    }
  });
  reader.expect("log=");
  metadata.log = reader.read_bytes(reader.read_number<uint64_t>('\n'), kMaxMetadataLog);
  reader.expect(kLastLine);
  reader.expect_end();
  if (reader.failed()) return reader.status();
  return metadata;
}

Result<std::string> reproducible_metadata(std::string_view blob) {
  Result<KernelMetadata> metadata = parse_metadata(blob);
  if (!metadata) return metadata.status();
  metadata->compile_us = 0;
  metadata->log.clear();
  return encode_metadata(*metadata);
}

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the run of digits off the front, without its leading zeros.
std::string_view take_number(std::string_view* text) {
  size_t size = 0;
  while (size < text->size() && is_digit((*text)[size])) ++size;
  std::string_view digits = text->substr(0, size);
  text->remove_prefix(size);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool is_newer_compiler(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(&a);
      const std::string_view y = take_number(&b);
      if (x.size() != y.size()) return x.size() > y.size();
      if (x != y) return x > y;
    } else {
      if (a.front() != b.front()) return a.front() > b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return !a.empty();
}

namespace {

// Sizes and offsets change whenever a field comes, goes or moves; a family's number is raised when
// a meaning changes.

std::string abi_of(const KernelConfig&) {
  using pagejit_shared::AttentionParams;
  return format("attention-2:{}.{}.{}.{}:{}.{}.{}", sizeof(AttentionParams),
                offsetof(AttentionParams, workspace), offsetof(AttentionParams, num_splits),
                offsetof(AttentionParams, score_scale), sizeof(pagejit_shared::WorkspaceHeader),
                pagejit_shared::kCountersOffset, pagejit_shared::kMergeCounterCapacity);
}

std::string abi_of(const MergeStatesConfig&) {
  using pagejit_shared::MergeStatesParams;
  return format("merge-states-2:{}.{}.{}", sizeof(MergeStatesParams),
                offsetof(MergeStatesParams, out), offsetof(MergeStatesParams, num_states));
}

std::string abi_of(const CacheWriteConfig&) {
  using pagejit_shared::CacheWriteParams;
  return format("cache-write-1:{}.{}.{}", sizeof(CacheWriteParams),
                offsetof(CacheWriteParams, key_stride_token),
                offsetof(CacheWriteParams, num_q_heads));
}

std::string abi_of(const MlaCacheWriteConfig&) {
  using pagejit_shared::MlaCacheWriteParams;
  return format("mla-cache-write-1:{}.{}.{}", sizeof(MlaCacheWriteParams),
                offsetof(MlaCacheWriteParams, kv_c_stride_token),
                offsetof(MlaCacheWriteParams, num_q_heads));
}

template <class Params>
std::string small_abi(const char* family) {
  return format("{}-1:{}", family, sizeof(Params));
}
std::string abi_of(const CopyBlocksConfig&) {
  return small_abi<pagejit_shared::CopyBlocksParams>("copy-blocks");
}
std::string abi_of(const GatherCacheConfig&) {
  return small_abi<pagejit_shared::GatherCacheParams>("gather-cache");
}
std::string abi_of(const ConvertFloat8Config&) {
  return small_abi<pagejit_shared::ConvertFloat8Params>("convert-float8");
}
std::string abi_of(const IndexKeyWriteConfig&) {
  return small_abi<pagejit_shared::IndexKeyWriteParams>("index-key-write");
}
std::string abi_of(const IndexKeyGatherConfig&) {
  return small_abi<pagejit_shared::IndexKeyGatherParams>("index-key-gather");
}
std::string abi_of(const IndexLogitsConfig&) {
  return small_abi<pagejit_shared::IndexLogitsParams>("index-logits");
}
std::string abi_of(const TopKConfig&) { return small_abi<pagejit_shared::TopKParams>("top-k"); }

}  // namespace

std::string parameter_abi(const AnyConfig& config) {
  return std::visit([](const auto& c) { return abi_of(c); }, config);
}

}  // namespace pagejit
