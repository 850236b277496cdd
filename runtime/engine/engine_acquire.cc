// The acquiring half of Engine::Impl: from a spec and the targets that would serve to an image.
#include <optional>
#include <utility>

#include "generator/arch.h"
#include "generator/families.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"
#include "runtime/target_ladder.h"

namespace pagejit {
namespace {

// A plan is within the bounds of its target: that of 8.0 has more shared memory than GPUs of 8.6 or
// 8.9, on which its cubins run as well. `device` may be null: nothing is known.
Status check_fits(const KernelSource& source, const DeviceInfo* device) {
  if (device == nullptr || device->max_shared_bytes <= 0) return {};
  const int needed = shared_bytes(source.config);
  if (needed <= device->max_shared_bytes) return {};
  return Status(
      StatusCode::kUnsupported,
      format("{} for {} takes {} bytes of shared memory: this GPU has {}", source.kernel_name,
             source.target.to_string(), needed, device->max_shared_bytes));
}

}  // namespace

Result<KernelSource> Engine::Impl::render_for(const AnySpec& spec, const Target& target,
                                              const DeviceInfo* device) {
  Result<KernelSource> source = render(spec, target);
  if (!source) return source;
  if (Status fits = check_fits(*source, device); !fits) return fits;
  return source;
}

Result<StoredImage> Engine::Impl::acquire_image(const KernelSource& source, JitReport& report,
                                                const jit::JobOptions& job) {
  const Stopwatch stopwatch;
  CompileRecord record;
  Result<StoredImage> image = images.acquire(source, compiler_for(source.target), &record, job);
  if (record.made) {
    report.compiled(source.target, record, image.status());
  } else if (image) {
    report.hit(source.target, image->entry->key.name(), image->origin, stopwatch.milliseconds());
  }
  return image;
}

// What was given ahead of deployment serves, for whichever target of the ladder: a bundle for sm_80
// is not passed over on a GPU of 8.6 because a compiler is there too, if that compiler made it.
std::optional<Engine::Impl::Acquired> Engine::Impl::acquire_ahead(
    const AnySpec& spec, const std::vector<Target>& targets, const DeviceInfo* device,
    JitReport& report) {
  if (!images.has_layers()) return std::nullopt;
  const Stopwatch stopwatch;
  for (const Target& target : targets) {
    Result<KernelSource> source = render_for(spec, target, device);
    if (!source) continue;
    std::optional<StoredImage> image = images.find_ahead(*source, compiler_for(target));
    if (!image) continue;
    report.hit(target, image->entry->key.name(), image->origin, stopwatch.milliseconds());
    return Acquired{std::move(source).value(), std::move(*image)};
  }
  return std::nullopt;
}

// The first target of the ladder for which an image is stored or can be made. An image of a later
// target in the cache directory is never preferred to compiling for an earlier one.
Result<Engine::Impl::Acquired> Engine::Impl::acquire(const AnySpec& spec,
                                                     const std::vector<Target>& targets,
                                                     const DeviceInfo* device, JitReport& report,
                                                     const jit::JobOptions& job) {
  if (!report.may_compile()) {
    std::vector<Target> all = targets;
    if (device != nullptr && !targets.front().is_host()) {
      for (const Target& target : ptx_ladder(device->sm)) all.push_back(target);
    }
    return acquire_stored(spec, all, device, report);
  }
  if (std::optional<Acquired> ahead = acquire_ahead(spec, targets, device, report)) {
    return std::move(*ahead);
  }
  Status first_failure;
  bool has_no_plan = false;  // on a GPU that is known
  bool can_be_made = true;
  for (const Target& target : targets) {
    Result<KernelSource> source = render_for(spec, target, device);
    Status failure = source.status();
    if (source) {
      Result<StoredImage> image = acquire_image(*source, report, job);
      if (image) return Acquired{std::move(source).value(), std::move(image).value()};
      failure = image.status();
      can_be_made = can_be_made && failure.code() == StatusCode::kUnsupported;
    } else {
      has_no_plan = has_no_plan || arch_of(target);
    }
    if (!may_try_next(failure)) return failure;
    if (first_failure) first_failure = failure;
  }
  // A GPU that is newer than the compiler, or than this library; or there is no compiler, and PTX
  // may be stored.
  if (device != nullptr && !targets.front().is_host() && !has_no_plan) {
    Result<Acquired> ptx = acquire_ptx(spec, *device, can_be_made, report, job);
    if (ptx) {
      logger->warning(format("{}: PTX for {} is taken on a GPU of compute capability {}.{}: {}",
                             ptx->source.kernel_name, ptx->source.target.to_string(),
                             device->sm / 10, device->sm % 10, first_failure.message()));
    }
    if (ptx || !may_try_next(ptx.status())) return ptx;
  }
  return first_failure;
}

// PTX of the first target that has a plan and a compiler, and whose kernel fits on the device.
Result<Engine::Impl::Acquired> Engine::Impl::acquire_ptx(const AnySpec& spec,
                                                         const DeviceInfo& device, bool can_be_made,
                                                         JitReport& report,
                                                         const jit::JobOptions& job) {
  Status last_failure(
      StatusCode::kUnsupported,
      format("no PTX serves a GPU of compute capability {}.{}", device.sm / 10, device.sm % 10));
  for (const Target& target : ptx_ladder(device.sm)) {
    Result<KernelSource> source = render_for(spec, target, &device);
    if (!source) {
      if (!may_try_next(source.status())) return source.status();
      continue;
    }
    if (can_be_made) {
      if (std::optional<Acquired> ahead = acquire_ahead(spec, {target}, &device, report)) {
        return std::move(*ahead);
      }
      Result<StoredImage> image = acquire_image(*source, report, job);
      if (image) return Acquired{std::move(source).value(), std::move(image).value()};
      if (image.status().code() != StatusCode::kUnsupported) return image.status();
      last_failure = image.status();
    } else {
      std::string key;
      const Stopwatch stopwatch;
      if (std::optional<StoredImage> image = images.find(*source, compiler_for(target), &key)) {
        report.hit(target, key, image->origin, stopwatch.milliseconds());
        return Acquired{std::move(source).value(), std::move(*image)};
      }
    }
  }
  return last_failure;
}

// The first target of the ladder for which an image is stored; which of them the compiler serves
// is not known without opening it.
Result<Engine::Impl::Acquired> Engine::Impl::acquire_stored(const AnySpec& spec,
                                                            const std::vector<Target>& targets,
                                                            const DeviceInfo* device,
                                                            JitReport& report) {
  const Stopwatch stopwatch;
  Status first_failure;
  std::optional<std::pair<Target, std::string>> first_miss;  // with its key
  for (const Target& target : targets) {
    Result<KernelSource> source = render_for(spec, target, device);
    if (!source) {
      if (!may_try_next(source.status())) return source.status();
      if (first_failure) first_failure = source.status();
      continue;
    }
    std::string key;
    std::optional<StoredImage> image = images.find(*source, compiler_for(target), &key);
    if (image) {
      report.hit(target, image->entry->key.name(), image->origin, stopwatch.milliseconds());
      return Acquired{std::move(source).value(), std::move(*image)};
    }
    if (!first_miss) first_miss.emplace(target, std::move(key));
  }
  if (!first_miss) return first_failure;
  const auto& [target, key] = *first_miss;
  const Status denied = report.denied_by_policy(target, key);
  ++denied_by_policy;
  report.refused(target, key, stopwatch.milliseconds(), denied);
  return denied;
}

}  // namespace pagejit
