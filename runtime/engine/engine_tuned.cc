// The tuned half of Engine::Impl: whether a record says another tile configuration than the planner
// for a spec on a device, and whether its image is there.
#include <utility>

#include "generator/families.h"
#include "generator/tile_text.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/image_key.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"

namespace pagejit {

// Looks into every layer, and compiles nothing. kNotFound where the record is of another version of
// the library, or where its image is not there.
Result<Engine::Impl::Acquired> Engine::Impl::resolve_tuned(const TunedRecord& record,
                                                           const KernelSpec& spec,
                                                           const Target& target) {
  const Result<KernelConfig> config = plan_tile(spec, target, record.tile);
  if (!config) return config.status();
  Result<KernelSource> source = dependencies.render(*config);
  if (!source) return source.status();
  Compiler& compiler = compiler_for(target);
  const std::string name =
      cache::to_hex(cache::make_key(key_ingredients(*source, compiler)).source);
  if (!record.image.starts_with(name)) {
    return Status(StatusCode::kNotFound,
                  format("it was measured with another source, by version {}", record.version));
  }
  std::string key;
  std::optional<StoredImage> image = images.find(*source, compiler, &key);
  if (!image) return Status(StatusCode::kNotFound, format("its image {} is not stored", key));
  return Acquired{std::move(source).value(), std::move(*image), /*is_tuned=*/true};
}

std::optional<Engine::Impl::Acquired> Engine::Impl::choose_tuned(const KernelSpec& spec,
                                                                 const std::vector<Target>& targets,
                                                                 const std::string& device) {
  const std::string text = canonical_text(spec);
  for (const Target& target : targets) {
    for (const FoundRecord& found : images.find_records(text, target, device)) {
      if (!found.record.changes_tile()) return std::nullopt;
      Result<Acquired> acquired = resolve_tuned(found.record, spec, target);
      if (acquired) {
        logger->info(format("{} for {} on {}: {} as it was tuned, instead of {}", text,
                            target.to_string(), device, found.record.tile,
                            found.record.planned_tile));
        return std::move(acquired).value();
      }
      logger->info(format("the tuned record of {} for {} on {} is not used: {}", text,
                          target.to_string(), device, acquired.status().message()));
    }
  }
  return std::nullopt;
}

std::shared_ptr<Engine::Impl::TunedSlot> Engine::Impl::tuned_slot(const std::string& key) {
  const std::lock_guard lock(tuned_mutex);
  std::shared_ptr<TunedSlot>& slot = tuned[key];
  if (slot == nullptr) slot = std::make_shared<TunedSlot>();
  return slot;
}

std::optional<Engine::Impl::Acquired> Engine::Impl::acquire_tuned(
    const AnySpec& any_spec, const std::vector<Target>& targets, const Place& place,
    JitReport& report) {
  const KernelSpec* spec = std::get_if<KernelSpec>(&any_spec);
  if (!options.tuned || spec == nullptr || spec->batch_invariant) return std::nullopt;
  const Stopwatch stopwatch;
  const std::shared_ptr<TunedSlot> slot = tuned_slot(table_key(any_spec, place.where.info));
  std::call_once(slot->decided, [&] {
    slot->choice =
        choose_tuned(*spec, targets, device_name(*place.opened.driver, place.where.info.device));
  });
  if (!slot->choice || slot->is_refused) return std::nullopt;
  const StoredImage& image = slot->choice->image;
  report.hit(slot->choice->source.target, image.entry->key.name(), image.origin,
             stopwatch.milliseconds());
  return *slot->choice;
}

// The driver refused the choice: the planner's serves from now on.
void Engine::Impl::refuse_tuned(const LoadCall& call, const Acquired& acquired,
                                const Status& refusal) {
  ++driver_rejects;
  const std::string name = acquired.image.entry->key.name();
  modules.erase(name);
  images.discard_rejected(acquired.image);
  logger->warning(format("the driver refused the tuned kernel {}, the planner's is taken: {}", name,
                         refusal.message()));
  tuned_slot(table_key(call.spec, call.where.info))->is_refused = true;
}

Result<std::vector<TunedKernel>> Engine::Impl::find_tuned(const KernelSpec& spec,
                                                          const Target& target) {
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  if (Result<KernelSource> source = render(spec, target); !source) return source.status();
  std::vector<TunedKernel> tuned_kernels;
  for (FoundRecord& found : images.find_records(canonical_text(spec), target)) {
    TunedKernel& kernel = tuned_kernels.emplace_back();
    kernel.found = std::move(found);
    if (spec.batch_invariant) {
      kernel.why_unused = Status(StatusCode::kUnsupported, "the spec is batch_invariant");
      continue;
    }
    Result<Acquired> acquired = resolve_tuned(kernel.found.record, spec, target);
    kernel.why_unused = acquired.status();
    if (!acquired) continue;
    KernelInfo info = make_info(acquired->source, acquired->image);
    info.tuned = true;
    kernel.image = StoredKernel{acquired->image.entry, std::move(info)};
  }
  return tuned_kernels;
}

}  // namespace pagejit
