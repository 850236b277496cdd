#include "generator/families.h"

#include "generator/cache_ops.h"
#include "generator/cache_write.h"
#include "generator/indexer.h"
#include "generator/merge_states.h"
#include "generator/mla_cache_write.h"
#include "generator/planner.h"

namespace pagejit {

Status validate_any(const AnySpec& spec) {
  return std::visit([](const auto& s) { return validate(s); }, spec);
}

std::string text_of(const AnySpec& spec) {
  return std::visit([](const auto& s) { return canonical_text(s); }, spec);
}

Result<AnyConfig> plan_any(const AnySpec& spec, const Target& target) {
  return std::visit(
      [&](const auto& s) -> Result<AnyConfig> {
        auto config = plan(s, target);
        if (!config) return config.status();
        return AnyConfig(std::move(config).value());
      },
      spec);
}

std::string spec_text(const AnyConfig& config) {
  return std::visit([](const auto& c) { return canonical_text(c.spec); }, config);
}

const Target& target_of(const AnyConfig& config) {
  return std::visit([](const auto& c) -> const Target& { return c.target; }, config);
}

int threads_per_cta(const AnyConfig& config) {
  return std::visit([](const auto& c) { return c.threads_per_cta(); }, config);
}

bool uses_pdl(const AnyConfig& config) {
  return std::visit(
      [](const auto& c) {
        if constexpr (requires { c.spec.pdl; }) return c.spec.pdl;
        return false;
      },
      config);
}

int shared_bytes(const AnyConfig& config) {
  return std::visit([](const auto& c) { return c.shared_bytes(); }, config);
}

}  // namespace pagejit
