#include "runtime/engine/source_metadata.h"

#include <string_view>

#include "generator/families.h"
#include "runtime/format.h"

namespace pagejit {

KernelMetadata metadata_of(const KernelSource& source) {
  KernelMetadata metadata;
  metadata.spec = spec_text(source.config);
  metadata.target = source.target.to_string();
  metadata.symbol = source.kernel_name;
  metadata.abi = parameter_abi(source.config);
  metadata.threads_per_cta = static_cast<uint32_t>(threads_per_cta(source.config));
  metadata.dynamic_shared_bytes = static_cast<uint32_t>(shared_bytes(source.config));
  metadata.pdl = uses_pdl(source.config) ? 1 : 0;
  return metadata;
}

Status check_metadata(const KernelMetadata& stored, const KernelSource& source) {
  const KernelMetadata wanted = metadata_of(source);
  auto differs = [](std::string_view field, const auto& is, const auto& should) {
    return Status(StatusCode::kDataCorrupt,
                  format("the entry's {} is {}, not {}", field, is, should));
  };
  if (stored.spec != wanted.spec) return differs("spec", stored.spec, wanted.spec);
  if (stored.target != wanted.target) return differs("target", stored.target, wanted.target);
  if (stored.symbol != wanted.symbol) return differs("symbol", stored.symbol, wanted.symbol);
  if (stored.abi != wanted.abi) return differs("parameter ABI", stored.abi, wanted.abi);
  if (stored.threads_per_cta != wanted.threads_per_cta) {
    return differs("threads_per_cta", stored.threads_per_cta, wanted.threads_per_cta);
  }
  if (stored.dynamic_shared_bytes != wanted.dynamic_shared_bytes) {
    return differs("dynamic_shared_bytes", stored.dynamic_shared_bytes,
                   wanted.dynamic_shared_bytes);
  }
  if (stored.pdl != wanted.pdl) return differs("pdl", stored.pdl, wanted.pdl);
  return {};
}

}  // namespace pagejit
