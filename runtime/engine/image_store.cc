#include "runtime/engine/image_store.h"

#include <cmath>
#include <optional>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/image_key.h"
#include "runtime/engine/source_metadata.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"
#include "runtime/jit/environment.h"

namespace pagejit {
namespace {

cache::DiskCacheOptions disk_options(const EngineOptions& options,
                                     const std::shared_ptr<const Logger>& logger,
                                     cache::DiskCacheOptions disk) {
  disk.max_bytes = options.cache_max_bytes;
  if (options.disk_cache) {
    disk.directory = cache::resolve_cache_directory(options.cache_dir, process_environment());
    disk.on_warning = [logger](const Status& status) {
      logger->warning("kernels are kept in memory only: " + status.message());
    };
    disk.on_lock_failure = [logger](const Status& status) {
      logger->info("processes may compile the same kernel at the same time: " + status.message());
    };
  } else {
    disk.directory.reason = "the disk cache is switched off";
  }
  return disk;
}

cache::Retention retention_of(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::kCompileFailed:
      return cache::Retention::kKeep;
    case StatusCode::kCompilerUnavailable:
      return cache::Retention::kExpires;
    default:
      return cache::Retention::kNone;
  }
}

cache::FlightCaller caller_of(const jit::JobOptions& job) {
  return {.stop = job.stop, .urgency = static_cast<int>(job.now()), .shared_urgency = job.raised};
}

// The job of a compile for all who want it.
jit::JobOptions job_of(const cache::FlightDemand& demand) {
  return {.priority = JobPriority::kBackground, .stop = demand.stop, .raised = demand.urgency};
}

}  // namespace

ImageStore::ImageStore(const EngineOptions& options, std::shared_ptr<const Logger> logger,
                       ImageStoreParts parts)
    : logger_(std::move(logger)),
      open_layers_(std::move(parts.open_layers)),
      disk_(cache::DiskCache::open(disk_options(options, logger_, std::move(parts.disk)))),
      open_remote_(std::move(parts.open_remote)),
      requires_signed_(options.require_signed),
      flights_(std::move(parts.flights)),
      dump_(options.dump_dir, logger_) {}

ImageStore::Wanted ImageStore::wanted_of(const cache::KeyIngredients& ingredients,
                                         const Result<std::string>& identity) {
  return {cache::make_key(ingredients), identity.is_ok()};
}

std::optional<StoredImage> ImageStore::find(const KernelSource& source, Compiler& compiler,
                                            std::string* key) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  const Result<std::string> identity = compiler.identity_unopened();
  if (identity) ingredients.compiler_identity = *identity;
  const Wanted wanted = wanted_of(ingredients, identity);
  *key = identity ? wanted.key.name() : cache::to_hex(wanted.key.source);
  const Stopwatch stopwatch;
  Shared found = lookup_ahead(wanted, source);
  if (found == nullptr) found = accept(look_in(*disk_, wanted, source), source, ImageOrigin::kDisk);
  recorder_.lookup_us.record(stopwatch.milliseconds() * 1000);
  if (found == nullptr) found = fetch(wanted, source);
  if (found == nullptr) return std::nullopt;
  return *found;
}

std::optional<StoredImage> ImageStore::find_ahead(const KernelSource& source, Compiler& compiler) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  const Result<std::string> identity = compiler.identity();
  if (identity) ingredients.compiler_identity = *identity;
  const Stopwatch stopwatch;
  const Shared found = lookup_ahead(wanted_of(ingredients, identity), source);
  recorder_.lookup_us.record(stopwatch.milliseconds() * 1000);
  if (found == nullptr) return std::nullopt;
  return *found;
}

bool ImageStore::has_layers() { return !layers().empty(); }

Result<StoredImage> ImageStore::acquire(const KernelSource& source, Compiler& compiler,
                                        CompileRecord* record, const jit::JobOptions& job) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  Result<std::string> identity = compiler.identity();
  if (identity) ingredients.compiler_identity = *identity;
  const Wanted wanted = wanted_of(ingredients, identity);

  bool waited = false;
  Result<Shared> image = flights_.run(
      wanted.key,
      [&](const cache::FlightDemand& demand) -> Flight::Outcome {
        const Stopwatch stopwatch;
        Shared own = lookup_own(wanted, source);
        recorder_.lookup_us.record(stopwatch.milliseconds() * 1000);
        if (own != nullptr) return {own};
        if (!identity) {
          if (Shared found = fetch(wanted, source)) return {found};
          return {identity.status()};
        }
        cache::ProcessLock lock;
        const auto find = [&] {
          return accept(disk_->lookup(wanted.key), source, ImageOrigin::kDisk);
        };
        Result<Shared> found = wait_for_turn(wanted.key, source, find, demand.stop, &lock);
        if (!found || *found != nullptr) return {std::move(found)};
        if (Shared fetched = fetch(wanted, source)) return {fetched};
        // Not earlier: it opens the compiler, which none of the above needs.
        if (Status status = compiler.check_target(source.target); !status) return {status};
        return compile(std::move(ingredients), source, compiler, record, job_of(demand), &lock);
      },
      &waited, caller_of(job));
  if (!image) return image.status();
  StoredImage result = **image;
  if (waited) result.origin = ImageOrigin::kMemory;
  return result;
}

Result<StoredImage> ImageStore::replace_rejected(const StoredImage& rejected,
                                                 const KernelSource& source, Compiler& compiler,
                                                 CompileRecord* record,
                                                 const jit::JobOptions& job) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  Result<std::string> identity = compiler.identity();
  if (identity) ingredients.compiler_identity = *identity;
  if (!identity) {
    set_aside(*rejected.entry);
    return identity.status();
  }
  if (Status status = compiler.check_target(source.target); !status) return status;
  const cache::Key key = cache::make_key(ingredients);
  while (true) {
    // A flight, so that whoever asks meanwhile waits for this compile instead of starting another;
    // and another thread may have replaced the image already.
    bool waited = false;
    Result<Shared> image = flights_.run(
        key,
        [&](const cache::FlightDemand& demand) -> Flight::Outcome {
          const auto find = [&] { return lookup_replacement(key, rejected, source); };
          if (Shared found = find()) return {found};
          cache::ProcessLock lock;
          Result<Shared> found = wait_for_turn(key, source, find, demand.stop, &lock);
          if (!found || *found != nullptr) return {std::move(found)};
          set_aside(*rejected.entry);
          return compile(ingredients, source, compiler, record, job_of(demand), &lock);
        },
        &waited, caller_of(job));
    if (!image) return image.status();
    // The flight of one that asked before may have found the rejected image.
    const bool is_rejected_one = waited && (*image)->image() == rejected.image();
    if (!is_rejected_one) return **image;
  }
}

void ImageStore::set_aside(const cache::Entry& entry) {
  disk_->reject(entry);
  memory_.erase(entry.key);
}

Result<ImageStore::Shared> ImageStore::wait_for_turn(const cache::Key& key,
                                                     const KernelSource& source,
                                                     const std::function<Shared()>& find,
                                                     const std::stop_token& stop,
                                                     cache::ProcessLock* lock) {
  Shared found;
  const auto is_published = [&] { return (found = find()) != nullptr; };
  const Stopwatch stopwatch;
  bool has_waited = false;
  const cache::LockOutcome outcome = disk_->lock(key, is_published, lock, stop, &has_waited);
  const double wait_ms = stopwatch.milliseconds();
  if (has_waited) recorder_.process_wait_ms.record(wait_ms);
  if (outcome == cache::LockOutcome::kTimedOut) {
    logger_->info(
        format("{} for {} is compiled here too: another process has taken too long, "
               "{:.0f} ms ({})",
               source.kernel_name, source.target.to_string(), wait_ms, key.name()));
  }
  if (outcome == cache::LockOutcome::kStopped) return jit::cancelled_before_begin();
  return found;
}

ImageStore::Flight::Outcome ImageStore::compile(cache::KeyIngredients ingredients,
                                                const KernelSource& source, Compiler& compiler,
                                                CompileRecord* record, const jit::JobOptions& job,
                                                cache::ProcessLock* lock) {
  const Stopwatch stopwatch;
  Result<CompiledImage> compiled = compiler.compile(source, job);
  if (!compiled && compiled.status().code() == StatusCode::kCancelled) {
    ++compiles_cancelled_;
    lock->release();
    return {compiled.status()};
  }
  ++compiles_;
  record->made = true;
  record->wall_ms = stopwatch.milliseconds();
  if (!compiled) {
    record->key = cache::make_key(ingredients).name();
    ++compile_failures_;
    lock->release();  // before a callback, here and below
    logger_->error(format("{} ({} for {}, key {}) failed to compile in {:.0f} ms: {}",
                          source.kernel_name, spec_text(source.config), source.target.to_string(),
                          record->key, record->wall_ms, compiled.status().to_string()));
    if (dump_.is_on()) {
      dump_.write({source, compiler, record->key, ingredients.compiler_identity,
                   compiled.status().to_string() + "\n" + compiled.status().detail(), nullptr});
    }
    return {compiled.status(), retention_of(compiled.status())};
  }
  recorder_.compile_ms.record(compiled->compile_ms);
  // The compiler that really worked names the entry.
  if (!compiled->compiler_identity.empty()) {
    ingredients.compiler_identity = compiled->compiler_identity;
  }

  KernelMetadata metadata = metadata_of(source);
  const CompileReport& report = compiled->report;
  auto count = [](int value) { return static_cast<uint32_t>(value < 0 ? 0 : value); };
  metadata.compiler = compiled->compiler;
  metadata.static_shared_bytes = count(report.static_shared_bytes);
  metadata.registers = count(report.registers);
  metadata.spill_store_bytes = count(report.spill_store_bytes);
  metadata.spill_load_bytes = count(report.spill_load_bytes);
  metadata.stack_bytes = count(report.stack_bytes);
  metadata.compile_us = static_cast<uint64_t>(std::llround(compiled->compile_ms * 1000));
  metadata.log = compiled->log.substr(0, kMaxMetadataLog);

  auto entry = std::make_shared<cache::Entry>();
  entry->key = cache::make_key(ingredients);
  record->key = entry->key.name();
  entry->metadata = encode_metadata(metadata);
  entry->image = std::move(compiled->image);
  memory_.put(entry);
  store(*entry);
  lock->release();
  if (may_cross_network(source.target)) {
    if (cache::RemoteStore* far = remote()) {
      // Without times: whoever compiles it, the remote holds the same bytes.
      cache::Entry timeless = *entry;
      Result<std::string> blob = reproducible_metadata(entry->metadata);
      if (blob) timeless.metadata = std::move(blob).value();
      far->upload(timeless);
    }
  }
  logger_->info(format("compiled {} ({} for {}) in {:.0f} ms, {} registers, {} bytes ({})",
                       source.kernel_name, metadata.spec, metadata.target, compiled->compile_ms,
                       metadata.registers, entry->image.size(), entry->key.name()));
  for (const std::string& warning : report.warnings) logger_->warning(warning);
  if (dump_.is_on()) {
    dump_.write({source, compiler, record->key, ingredients.compiler_identity, compiled->log,
                 &entry->image});
  }
  return {std::make_shared<const StoredImage>(
      StoredImage{std::move(entry), std::move(metadata), ImageOrigin::kCompiled})};
}

void ImageStore::add_to(EngineStats& stats) const {
  const cache::DiskCacheStats disk = disk_->stats();
  const auto hits = [&](ImageOrigin origin) { return hits_[static_cast<size_t>(origin)].load(); };
  stats.memory_hits += hits(ImageOrigin::kMemory);
  stats.bundle_hits += hits(ImageOrigin::kBundle);
  stats.read_only_hits += hits(ImageOrigin::kReadOnlyDirectory);
  stats.disk_hits += hits(ImageOrigin::kDisk);
  stats.remote_hits += hits(ImageOrigin::kRemote);
  stats.compiles += compiles_;
  stats.compile_failures += compile_failures_;
  stats.compiles_cancelled += compiles_cancelled_;
  stats.waits += flights_.stats().waits;
  stats.process_waits += disk.lock_waits;
  stats.process_wait_hits += disk.lock_wait_hits;
  stats.process_wait_timeouts += disk.lock_timeouts;
  stats.corrupt_entries += disk.corrupt_total() + bad_metadata_;
  for (size_t i = 0; i < disk.corrupt.size(); ++i) {
    const auto kind = static_cast<cache::Corruption>(i);
    const uint64_t in_layers = layers_corrupt_[i];
    stats.corrupt_entries += in_layers;
    stats.corrupt_by_kind.push_back(
        {std::string(cache::corruption_name(kind)), disk.corrupt[i] + in_layers});
  }
  stats.corrupt_by_kind.push_back({"metadata", bad_metadata_});
  stats.publish_failures += disk.publish_failures_total();
  stats.publish_failures_by_errno = disk.publish_failures;
  stats.evictions += disk.evictions;
  stats.evicted_bytes += disk.evicted_bytes;
  if (is_remote_open_.load(std::memory_order_acquire)) add_remote_to(stats);
  recorder_.add_to(stats);
}

void ImageStore::flush_remote() {
  // As long as the store's own end would wait for them.
  static constexpr std::chrono::milliseconds kDrainTime{800};
  if (is_remote_open_.load(std::memory_order_acquire)) remote_->flush(kDrainTime);
}

void ImageStore::add_remote_to(EngineStats& stats) const {
  const cache::RemoteStoreStats remote = remote_->stats();
  stats.remote_failures += remote.failures_total() + remote.corrupt_total() + remote.distrusted;
  for (const auto& [status, num] : remote.statuses) stats.remote_failures += num;
  stats.remote_uploads += remote.uploads;
  stats.remote_upload_failures += remote.upload_failures + remote.upload_drops;
  stats.remote_breaker_opens +=
      remote.lookup_breaker.times_opened + remote.upload_breaker.times_opened;
}

}  // namespace pagejit
