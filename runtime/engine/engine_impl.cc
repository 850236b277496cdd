#include "runtime/engine/engine_impl.h"

#include <optional>
#include <utility>

#include "generator/arch.h"
#include "generator/families.h"
#include "runtime/engine/remote.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"
#include "runtime/target_ladder.h"

namespace pagejit {

std::string table_key(const AnySpec& spec, const DeviceInfo& device) {
  return format("{} @{}", text_of(spec), device.device);
}

Engine::Impl::Impl(EngineOptions engine_options, EngineDependencies engine_dependencies,
                   Trust engine_trust)
    : options(std::move(engine_options)),
      dependencies(std::move(engine_dependencies)),
      logger(std::make_shared<Logger>(options.log_level, options.log_callback)),
      trust(std::move(engine_trust)),
      recorder(options.record_path, logger),
      images(options, logger, store_parts()),
      kernels(dependencies.max_resident_kernels),
      stats_file(
          options.stats_path, [this] { return stats(); },
          [this](const Status& status) {
            logger->warning("the engine's counts are not written: " + status.message());
          }),
      async(options.compile_threads, calls) {}

bool Engine::Impl::is_lost_in_fork() const { return calls->is_lost() || !check_driver_process(); }

Status Engine::Impl::check_driver_process() const {
  const pid_t opened_by = driver_process.load();
  if (opened_by == 0 || opened_by == ::getpid()) return {};
  return Status(StatusCode::kDriverUnavailable,
                format("this engine opened the CUDA driver in process {}, and this is process {}, "
                       "forked from it: CUDA does not survive a fork; create the engine in the "
                       "child, or call exec",
                       opened_by, ::getpid()));
}

ImageStoreParts Engine::Impl::store_parts() {
  ImageStoreParts parts{.disk = dependencies.disk,
                        .flights = dependencies.flights,
                        .open_layers = nullptr,
                        .open_remote = nullptr};
  parts.open_layers = [this] {
    return open_store_layers(options, trust, *logger, dependencies.disk.file_system);
  };
  parts.open_remote = [this]() -> std::unique_ptr<cache::RemoteStore> {
    RemoteDependencies remote{
        .logger = logger, .check_signature = {}, .compilers = {}, .transport = dependencies.http};
    // It must own what it uses: an upload may outlive the engine.
    remote.check_signature = [trust = trust](std::string_view answer) {
      return trust.open_entry(answer);
    };
    Result<std::unique_ptr<cache::RemoteStore>> store = make_remote(options, std::move(remote));
    if (store) return std::move(store).value();
    logger->warning("the remote is not used: " + store.status().message());
    return nullptr;
  };
  return parts;
}

Compiler& Engine::Impl::compiler_for(const Target& target) {
  return target.is_host() ? *dependencies.host : *dependencies.nvrtc;
}

Result<Engine::Impl::OpenDriver> Engine::Impl::open_driver() {
  // Before any lock, which a thread that does not exist here may hold.
  if (Status status = check_driver_process(); !status) return status;
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  std::lock_guard lock(driver_mutex);
  if (open.driver != nullptr) return open;
  driver_process = ::getpid();
  const DriverRequest request{options.driver, options.allow_emulator, options.emulator_path};
  Result<std::shared_ptr<const Driver>> driver = dependencies.open_driver(request, *logger);
  if (!driver) {
    driver_process = 0;
    return driver.status();
  }
  open = {*driver, std::make_shared<Devices>(*driver)};
  return open;
}

Result<std::vector<Target>> Engine::Impl::targets_of(const DeviceInfo& device,
                                                     const Driver& driver) const {
  if (driver.is_emulator()) return std::vector<Target>{Target::host(device.sm)};
  return target_ladder(device.sm);
}

Result<KernelSource> Engine::Impl::render(const AnySpec& spec, const Target& target) const {
  if (Status status = validate_any(spec); !status) return status;
  Result<AnyConfig> config = dependencies.plan(spec, target);
  if (!config) return config.status();
  return dependencies.render(*config);
}

Result<std::string> Engine::Impl::render_text(const AnySpec& spec, const Target& target) const {
  Result<KernelSource> source = render(spec, target);
  if (!source) return source.status();
  return std::move(source->text);
}

// Whether `stream` lets a kernel be compiled and loaded now.
Status Engine::Impl::check_capture(const OpenDriver& opened, const DeviceContext& where,
                                   Stream stream, JitReport& report) {
  if (stream == nullptr) return {};
  const Stopwatch stopwatch;
  const Driver& driver = *opened.driver;
  const ContextScope scope(driver, where.context);
  if (scope.result() != CUDA_SUCCESS) return driver.failure(scope.result(), "cuCtxPushCurrent");
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver.cuStreamIsCapturing(static_cast<CUstream>(stream), &capture);
  // The legacy stream, while another stream of the context is being captured.
  const bool implicit = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (result != CUDA_SUCCESS && !implicit) return driver.failure(result, "cuStreamIsCapturing");
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE && !implicit) return {};

  Result<std::vector<Target>> targets = targets_of(where.info, driver);
  if (!targets) return targets.status();
  Status denied = report.denied_in_capture();
  ++denied_in_capture;
  report.refused(targets->front(), "", stopwatch.milliseconds(), denied);
  return denied;
}

Result<Engine::Impl::Place> Engine::Impl::place_of(int device) {
  Result<OpenDriver> opened = open_driver();
  if (!opened) return opened.status();
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  Result<DeviceContext> where = opened->devices->context_of(device);
  if (!where) return where.status();
  return Place{std::move(opened).value(), std::move(where).value()};
}

Status Engine::Impl::refuse_in_capture(const AnySpec& spec, const Place& place, Stream stream) {
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  JitReport report(options, *logger, spec, JitReport::Call::kPrepare, &recorder);
  const std::string key = table_key(spec, place.where.info);
  const std::shared_ptr<LoadedKernel> kernel = kernels.find(key);
  if (kernel != nullptr && kernel->is_resident(place.where)) return {};
  return check_capture(place.opened, place.where, stream, report);
}

Result<PreparedKernel> Engine::Impl::prepare_at(const AnySpec& spec, const Place& place,
                                                Stream stream, const jit::JobOptions& job) {
  const Stopwatch stopwatch;
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  JitReport report(options, *logger, spec, JitReport::Call::kPrepare, &recorder);
  const OpenDriver& opened = place.opened;
  const DeviceContext& where = place.where;

  const std::string key = table_key(spec, where.info);
  std::shared_ptr<LoadedKernel> kernel = kernels.find(key);
  if (kernel == nullptr || !kernel->is_resident(where)) {
    if (Status status = check_capture(opened, where, stream, report); !status) return status;
  }
  KernelInfo info;
  if (kernel != nullptr) {
    ++table_hits;
    bool rejected = false;
    if (Status status = kernel->make_resident(where, &rejected); !status) return status;
    info = kernel->parts.info;
    info.origin = ImageOrigin::kMemory;
    report.hit(info.target, info.key, info.origin, stopwatch.milliseconds());
  } else {
    Result<std::vector<Target>> targets = targets_of(where.info, *opened.driver);
    if (!targets) return targets.status();
    std::optional<Acquired> chosen = acquire_tuned(spec, *targets, place, report);
    Result<Acquired> acquired = chosen ? Result<Acquired>(*std::move(chosen))
                                       : acquire(spec, *targets, &where.info, report, job);
    if (!acquired) return acquired.status();

    std::vector<std::shared_ptr<LoadedKernel>> dropped;  // destroyed after the lock is released
    std::lock_guard lock(load_mutex);
    kernel = kernels.find(key);  // another thread may have loaded it meanwhile
    if (kernel == nullptr) {
      Result<std::shared_ptr<LoadedKernel>> loaded =
          load({spec, opened.driver, where, report, job}, *acquired);
      if (!loaded) return loaded.status();
      kernel = std::move(loaded).value();
      dropped = kernels.insert(key, kernel);
      if (!dropped.empty())
        std::erase_if(modules, [](const auto& m) { return m.second.expired(); });
      info = kernel->parts.info;
    } else {
      bool rejected = false;
      if (Status status = kernel->make_resident(where, &rejected); !status) return status;
      info = kernel->parts.info;
      info.origin = acquired->image.origin;
    }
  }
  info.prepare_ms = stopwatch.milliseconds();
  return PreparedKernel{std::move(kernel), std::move(info)};
}

Result<KernelInfo> Engine::Impl::precompile(const AnySpec& spec, const Target& target) {
  const Stopwatch stopwatch;
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  JitReport report(options, *logger, spec, JitReport::Call::kPrecompile);
  Result<Acquired> acquired = acquire(spec, {target}, nullptr, report);
  if (!acquired) return acquired.status();
  KernelInfo info = make_info(acquired->source, acquired->image);
  info.prepare_ms = stopwatch.milliseconds();
  return info;
}

Result<StoredKernel> Engine::Impl::find_stored(const AnySpec& spec, const Target& target) {
  const Stopwatch stopwatch;
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  const Result<KernelSource> source = render(spec, target);
  if (!source) return source.status();
  std::string key;
  std::optional<StoredImage> image = images.find(*source, compiler_for(target), &key);
  if (!image) {
    return Status(StatusCode::kNotFound, format("{} for {} is not stored (key {})", text_of(spec),
                                                target.to_string(), key));
  }
  StoredKernel stored = {image->entry, make_info(*source, *image)};
  stored.info.prepare_ms = stopwatch.milliseconds();
  return stored;
}

Status Engine::Impl::prepare_part(const AnySpec& spec, const Place& place, Stream stream,
                                  const jit::JobOptions& job,
                                  std::shared_ptr<const LoadedKernel>* kernel, KernelInfo* info) {
  Result<PreparedKernel> prepared = prepare_at(spec, place, stream, job);
  if (!prepared) return prepared.status();
  *kernel = std::move(prepared->kernel);
  *info = std::move(prepared->info);
  return {};
}

Status Engine::Impl::precompile_part(const AnySpec& spec, const Target& target, KernelInfo* info) {
  Result<KernelInfo> made = precompile(spec, target);
  if (!made) return made.status();
  *info = std::move(made).value();
  return {};
}

Result<Target> Engine::Impl::target_of_device(int device) {
  Result<OpenDriver> opened = open_driver();
  if (!opened) return opened.status();
  const CallScope scope(*calls);
  if (!scope.status()) return scope.status();
  Result<DeviceInfo> info = opened->devices->info_of(device);
  if (!info) return info.status();
  Result<std::vector<Target>> targets = targets_of(*info, *opened->driver);
  if (!targets) return targets.status();
  if (!targets->front().is_host()) {
    for (const Target& target : ptx_ladder(info->sm)) targets->push_back(target);
  }
  Status first_failure;
  for (const Target& target : *targets) {
    Status status = compiler_for(target).check_target(target);
    // Without a compiler only stored images are used, and they are looked for from the first target
    // on.
    if (status || status.code() == StatusCode::kCompilerUnavailable) return target;
    if (first_failure) first_failure = status;
  }
  return first_failure;
}

EngineStats Engine::Impl::stats() const {
  EngineStats stats;
  const CallScope scope(*calls);
  if (!scope.status()) {  // a forked child's: locks may be held for ever
    images.recorder().add_to(stats);
    return stats;
  }
  images.add_to(stats);
  stats.memory_hits += table_hits;
  stats.driver_rejects = driver_rejects;
  stats.modules_loaded = modules_loaded;
  stats.misses_denied_by_policy = denied_by_policy;
  stats.misses_denied_in_capture = denied_in_capture;
  return stats;
}

}  // namespace pagejit
