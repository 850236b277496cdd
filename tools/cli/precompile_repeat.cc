#include "tools/cli/precompile_repeat.h"

#include <algorithm>
#include <string>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/stored_kernel.h"

namespace pagejit::cli {
namespace {

Status compare(const std::string& stored, const std::string& repeated) {
  if (stored == repeated) return {};
  const auto [at, other] =
      std::mismatch(stored.begin(), stored.end(), repeated.begin(), repeated.end());
  return Status(StatusCode::kDataCorrupt,
                "compiled again it is another image: " + std::to_string(stored.size()) + " and " +
                    std::to_string(repeated.size()) + " bytes, which first differ at byte " +
                    std::to_string(at - stored.begin()));
}

}  // namespace

PrecompileFunction make_function(std::shared_ptr<Engine> engine) {
  return [engine = std::move(engine)](const AnySpec& spec, const Target& target) {
    return precompile_any(*engine, spec, target);
  };
}

PrecompileFunction verify_function(std::shared_ptr<Engine> engine) {
  return [engine = std::move(engine)](const AnySpec& spec,
                                      const Target& target) -> Result<KernelInfo> {
    Result<StoredKernel> stored = find_stored(*engine, spec, target);
    if (!stored) return stored.status();
    return std::move(stored->info);
  };
}

Result<PrecompileFunction> repeat_function(std::shared_ptr<Engine> engine,
                                           const EngineOptions& options) {
  EngineOptions bare = options;
  bare.disk_cache = false;
  bare.memory_bundles.clear();
  bare.bundles.clear();
  bare.read_only_dirs.clear();
  bare.remote.clear();
  bare.record_path.clear();
  bare.dump_dir.clear();
  bare.stats_path.clear();
  const Result<std::shared_ptr<Engine>> made = Engine::create(std::move(bare));
  if (!made) return made.status();
  return PrecompileFunction([engine = std::move(engine), again = *made](
                                const AnySpec& spec, const Target& target) -> Result<KernelInfo> {
    const Result<StoredKernel> first = find_stored(*engine, spec, target);
    if (!first) return first.status();
    Result<KernelInfo> compiled = precompile_any(*again, spec, target);
    if (!compiled) return compiled.status();
    const Result<StoredKernel> second = find_stored(*again, spec, target);
    if (!second) return second.status();
    if (Status s = compare(first->entry->image, second->entry->image); !s) {
      return s.with_context(text_of(spec) + " for " + target.to_string());
    }
    return compiled;
  });
}

}  // namespace pagejit::cli
