// The loading half of Engine::Impl: from an image to a loaded kernel, and what is done where the
// driver refuses it.
#include <utility>

#include "generator/families.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

// "driver 13.0 refused the kernel for sm_90a on NVIDIA H200 (9.0): ...".
Status refusal_of(const Driver& driver, const DeviceInfo& device, const Target& target,
                  const Status& failure) {
  const std::string name = device_name(driver, device.device);
  return failure.with_context(format("driver {}.{} refused the kernel for {} on {} ({}.{})",
                                     driver.version() / 1000, driver.version() % 1000 / 10,
                                     target.to_string(), name.empty() ? "a GPU" : name,
                                     device.sm / 10, device.sm % 10));
}

}  // namespace

KernelInfo make_info(const KernelSource& source, const StoredImage& image) {
  const KernelMetadata& metadata = image.metadata;
  KernelInfo info;
  info.kernel_name = source.kernel_name;
  info.key = image.entry->key.name();
  info.target = source.target;
  info.origin = image.origin;
  info.compile_ms = static_cast<double>(metadata.compile_us) / 1000;
  info.image_bytes = image.image().size();
  info.registers = static_cast<int>(metadata.registers);
  info.spill_store_bytes = static_cast<int>(metadata.spill_store_bytes);
  info.spill_load_bytes = static_cast<int>(metadata.spill_load_bytes);
  info.stack_bytes = static_cast<int>(metadata.stack_bytes);
  info.shared_bytes =
      static_cast<int>(metadata.dynamic_shared_bytes + metadata.static_shared_bytes);
  info.threads_per_cta = static_cast<int>(metadata.threads_per_cta);
  info.pdl = metadata.pdl != 0;
  return info;
}

Result<std::shared_ptr<LoadedKernel>> Engine::Impl::load(const LoadCall& call, Acquired& acquired) {
  bool rejected = false;
  if (acquired.is_tuned) {
    Result<std::shared_ptr<LoadedKernel>> tuned_kernel =
        load_image(call.driver, call.where, acquired, &rejected);
    if (tuned_kernel || !rejected) return tuned_kernel;
    refuse_tuned(call, acquired, tuned_kernel.status());
    const Result<std::vector<Target>> targets = targets_of(call.where.info, *call.driver);
    if (!targets) return targets.status();
    Result<Acquired> planned =
        acquire(call.spec, *targets, &call.where.info, call.report, call.job);
    if (!planned) return planned.status();
    acquired = std::move(planned).value();
    rejected = false;
  }
  Result<std::shared_ptr<LoadedKernel>> loaded = load_or_replace(call, acquired, &rejected);
  if (loaded || !rejected) return loaded;
  const Status refusal =
      refusal_of(*call.driver, call.where.info, acquired.source.target, loaded.status());
  const Target refused = acquired.source.target;
  if (refused.is_host() || refused.variant == TargetVariant::kPtx || !call.report.may_compile()) {
    return refusal;
  }

  // The driver is older than the compiler, or the compiler's cubin is wrong for this GPU: the
  // driver's own compiler may do better.
  const bool has_compiler = refusal.code() != StatusCode::kCompilerUnavailable;
  Result<Acquired> ptx =
      acquire_ptx(call.spec, call.where.info, has_compiler, call.report, call.job);
  if (!ptx) {
    return refusal.with_message(
        format("{}; and as PTX: {}", refusal.message(), ptx.status().message()));
  }
  logger->warning(
      format("{}; PTX for {} is taken instead", refusal.message(), ptx->source.target.to_string()));
  rejected = false;
  loaded = load_or_replace(call, *ptx, &rejected);
  if (!loaded) {
    const Status last =
        refusal_of(*call.driver, call.where.info, ptx->source.target, loaded.status());
    return last.with_message(format("{}; and before: {}", last.message(), refusal.message()));
  }
  acquired = std::move(ptx).value();
  return loaded;
}

Result<std::shared_ptr<LoadedKernel>> Engine::Impl::load_or_replace(const LoadCall& call,
                                                                    Acquired& acquired,
                                                                    bool* rejected) {
  const Stopwatch stopwatch;
  Result<std::shared_ptr<LoadedKernel>> loaded =
      load_image(call.driver, call.where, acquired, rejected);
  if (loaded || !*rejected || acquired.image.origin == ImageOrigin::kCompiled) return loaded;

  // The image was stored: by a driver's change, a wrong copy or a defect it is not (or no longer)
  // one that runs here.
  *rejected = false;
  ++driver_rejects;
  const std::string name = acquired.image.entry->key.name();
  const Target& target = acquired.source.target;
  const std::string refusal =
      format("the driver refused the stored kernel ({})", loaded.status().message());
  modules.erase(name);
  if (!call.report.may_compile()) {
    images.discard_rejected(acquired.image);
    const Status denied(
        StatusCode::kDenied,
        format("{}: {}", refusal, call.report.denied_by_policy(target, name).message()), {},
        {.cuda_result = loaded.status().facts().cuda_result});
    ++denied_by_policy;
    call.report.refused(target, name, stopwatch.milliseconds(), denied);
    return denied;
  }
  logger->warning(format("the driver refused the stored kernel {}, which is compiled anew: {}",
                         name, loaded.status().message()));
  CompileRecord record;
  Result<StoredImage> fresh = images.replace_rejected(acquired.image, acquired.source,
                                                      compiler_for(target), &record, call.job);
  if (record.made) call.report.compiled(target, record, fresh.status());
  if (!fresh) {
    *rejected = may_try_next(fresh.status());
    return fresh.status().with_context(refusal);
  }
  acquired.image = std::move(fresh).value();
  return load_image(call.driver, call.where, acquired, rejected);
}

Result<std::shared_ptr<LoadedKernel>> Engine::Impl::load_image(
    const std::shared_ptr<const Driver>& driver, const DeviceContext& where,
    const Acquired& acquired, bool* rejected) {
  const Stopwatch stopwatch;
  std::weak_ptr<LoadedModule>& slot = modules[acquired.image.entry->key.name()];
  std::shared_ptr<LoadedModule> module = slot.lock();
  if (module == nullptr) {
    const ContextScope scope(*driver, where.context);
    if (scope.result() != CUDA_SUCCESS) return driver->failure(scope.result(), "cuCtxPushCurrent");
    Result<std::shared_ptr<LoadedModule>> loaded =
        LoadedModule::load(driver, acquired.image.image(), acquired.source.kernel_name, rejected);
    if (!loaded) return loaded.status();
    module = std::move(loaded).value();
    slot = module;
    ++modules_loaded;
  }
  KernelInfo info = make_info(acquired.source, acquired.image);
  info.tuned = acquired.is_tuned;
  Result<std::shared_ptr<LoadedKernel>> loaded =
      LoadedKernel::create({.driver = driver,
                            .module = std::move(module),
                            .config = acquired.source.config,
                            .info = std::move(info)},
                           where, rejected);
  if (loaded) images.recorder().load_ms.record(stopwatch.milliseconds());
  return loaded;
}

}  // namespace pagejit
