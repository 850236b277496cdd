#include "runtime/engine/image_store.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "generator/families.h"
#include "runtime/engine/image_key.h"
#include "runtime/engine/stopwatch.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

cache::DiskCacheOptions disk_options(const EngineOptions& options,
                                     const std::shared_ptr<const Logger>& logger,
                                     cache::DiskCacheOptions disk) {
  disk.max_bytes = options.cache_max_bytes;
  if (options.disk_cache) {
    disk.directory = cache::resolve_cache_directory(options.cache_dir, environment_variable);
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

// Whether a stored kernel is the one that `source` would give; a launch relies on every one of
// these.
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

}  // namespace

ImageStore::ImageStore(const EngineOptions& options, std::shared_ptr<const Logger> logger,
                       cache::DiskCacheOptions disk)
    : logger_(std::move(logger)),
      disk_(cache::DiskCache::open(disk_options(options, logger_, std::move(disk)))),
      dump_(options.dump_dir, logger_) {}

std::optional<StoredImage> ImageStore::find(const KernelSource& source, Compiler& compiler,
                                            std::string* key) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  const Result<std::string> identity = compiler.identity_unopened();
  if (identity) ingredients.compiler_identity = *identity;
  const cache::Key wanted = cache::make_key(ingredients);
  *key = identity ? wanted.name() : cache::to_hex(wanted.source);
  const Shared found = lookup_timed(wanted, !identity.is_ok(), source);
  if (found == nullptr) return std::nullopt;
  return *found;
}

Result<StoredImage> ImageStore::acquire(const KernelSource& source, Compiler& compiler,
                                        CompileRecord* record) {
  cache::KeyIngredients ingredients = key_ingredients(source, compiler);
  Result<std::string> identity = compiler.identity();
  if (identity) ingredients.compiler_identity = *identity;
  const cache::Key key = cache::make_key(ingredients);

  bool waited = false;
  Result<Shared> image = flights_.run(
      key,
      [&]() -> Flight::Outcome {
        if (Shared found = lookup_timed(key, !identity.is_ok(), source)) return {found};
        if (!identity) return {identity.status()};
        if (Status status = compiler.check_target(source.target); !status) return {status};
        cache::ProcessLock lock;
        const auto find = [&] { return accept(disk_->lookup(key), source); };
        if (Shared found = wait_for_turn(key, source, find, &lock)) return {found};
        return compile(std::move(ingredients), source, compiler, record, &lock);
      },
      &waited);
  if (!image) return image.status();
  StoredImage result = **image;
  if (waited) result.origin = ImageOrigin::kMemory;
  return result;
}

Result<StoredImage> ImageStore::replace_rejected(const StoredImage& rejected,
                                                 const KernelSource& source, Compiler& compiler,
                                                 CompileRecord* record) {
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
        [&]() -> Flight::Outcome {
          const auto find = [&] { return lookup_replacement(key, rejected, source); };
          if (Shared found = find()) return {found};
          cache::ProcessLock lock;
          if (Shared found = wait_for_turn(key, source, find, &lock)) return {found};
          set_aside(*rejected.entry);
          return compile(ingredients, source, compiler, record, &lock);
        },
        &waited);
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

ImageStore::Shared ImageStore::lookup_timed(const cache::Key& key, bool any_compiler,
                                            const KernelSource& source) {
  const Stopwatch stopwatch;
  Shared found = any_compiler ? lookup_any_compiler(key, source) : lookup(key, source);
  recorder_.lookup_us.record(stopwatch.milliseconds() * 1000);
  return found;
}

ImageStore::Shared ImageStore::lookup(const cache::Key& key, const KernelSource& source) {
  if (std::shared_ptr<const cache::Entry> entry = memory_.find(key)) {
    Result<KernelMetadata> metadata = parse_metadata(entry->metadata);
    if (metadata) {
      ++memory_hits_;
      return std::make_shared<StoredImage>(
          StoredImage{std::move(entry), std::move(metadata).value(), ImageOrigin::kMemory});
    }
  }
  return accept(disk_->lookup(key), source);
}

ImageStore::Shared ImageStore::lookup_any_compiler(const cache::Key& key,
                                                   const KernelSource& source) {
  // The newest compiler's, of those that are kernels of this library at all.
  const auto is_better = [&](const cache::Entry& a, const cache::Entry& b) {
    const Result<KernelMetadata> x = parse_metadata(a.metadata);
    const Result<KernelMetadata> y = parse_metadata(b.metadata);
    const bool x_fits = x && check_metadata(*x, source);
    const bool y_fits = y && check_metadata(*y, source);
    if (x_fits != y_fits) return x_fits;
    return x_fits && is_newer_compiler(x->compiler, y->compiler);
  };
  return accept(disk_->lookup_any_compiler(key.source, is_better), source);
}

ImageStore::Shared ImageStore::lookup_replacement(const cache::Key& key,
                                                  const StoredImage& rejected,
                                                  const KernelSource& source) {
  const std::shared_ptr<const cache::Entry> in_memory = memory_.find(key);
  if (in_memory != nullptr && in_memory->image != rejected.image()) return lookup(key, source);
  const cache::LookupResult found = disk_->lookup(key);
  const bool is_rejected_one = found.entry != nullptr && found.entry->image == rejected.image();
  return is_rejected_one ? nullptr : accept(found, source);
}

ImageStore::Shared ImageStore::wait_for_turn(const cache::Key& key, const KernelSource& source,
                                             const std::function<Shared()>& find,
                                             cache::ProcessLock* lock) {
  Shared found;
  const auto is_published = [&] { return (found = find()) != nullptr; };
  const Stopwatch stopwatch;
  bool has_waited = false;
  const cache::LockOutcome outcome = disk_->lock(key, is_published, lock, &has_waited);
  const double wait_ms = stopwatch.milliseconds();
  if (has_waited) recorder_.process_wait_ms.record(wait_ms);
  if (outcome == cache::LockOutcome::kTimedOut) {
    logger_->info(
        format("{} for {} is compiled here too: another process has taken too long, "
               "{:.0f} ms ({})",
               source.kernel_name, source.target.to_string(), wait_ms, key.name()));
  }
  return found;
}

// A hit is intact and from folders that only this user can write (the disk cache has checked both
// on what it read), so a host object in it may be loaded; what is left is whether it is this
// kernel.
ImageStore::Shared ImageStore::accept(const cache::LookupResult& found,
                                      const KernelSource& source) {
  if (found.outcome == cache::LookupOutcome::kCorrupt) {
    logger_->warning(format("a stored kernel was set aside: {} ({} for {})", found.status.message(),
                            spec_text(source.config), source.target.to_string()));
  }
  if (found.entry == nullptr) return nullptr;
  Result<KernelMetadata> metadata = parse_metadata(found.entry->metadata);
  Status status = metadata ? check_metadata(*metadata, source) : metadata.status();
  if (!status) {
    ++bad_metadata_;
    disk_->reject(*found.entry);
    logger_->warning(format("the stored kernel {} was set aside: {} ({} for {})",
                            found.entry->key.name(), status.message(), spec_text(source.config),
                            source.target.to_string()));
    return nullptr;
  }
  ++disk_hits_;
  memory_.put(found.entry);
  return std::make_shared<StoredImage>(
      StoredImage{found.entry, std::move(metadata).value(), ImageOrigin::kDisk});
}

ImageStore::Flight::Outcome ImageStore::compile(cache::KeyIngredients ingredients,
                                                const KernelSource& source, Compiler& compiler,
                                                CompileRecord* record, cache::ProcessLock* lock) {
  ++compiles_;
  const Stopwatch stopwatch;
  Result<CompiledImage> compiled = compiler.compile(source);
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
  const Status stored = disk_->publish(*entry);
  lock->release();
  logger_->info(format("compiled {} ({} for {}) in {:.0f} ms, {} registers, {} bytes ({})",
                       source.kernel_name, metadata.spec, metadata.target, compiled->compile_ms,
                       metadata.registers, entry->image.size(), entry->key.name()));
  for (const std::string& warning : report.warnings) logger_->warning(warning);
  if (!stored && !disk_->is_memory_only()) {
    logger_->info(format("{} was not stored: {}", entry->key.name(), stored.message()));
  }
  if (dump_.is_on()) {
    dump_.write({source, compiler, record->key, ingredients.compiler_identity, compiled->log,
                 &entry->image});
  }
  return {std::make_shared<const StoredImage>(
      StoredImage{std::move(entry), std::move(metadata), ImageOrigin::kCompiled})};
}

void ImageStore::add_to(EngineStats& stats) const {
  const cache::DiskCacheStats disk = disk_->stats();
  stats.memory_hits += memory_hits_;
  stats.disk_hits += disk_hits_;
  stats.compiles += compiles_;
  stats.compile_failures += compile_failures_;
  stats.waits += flights_.stats().waits;
  stats.process_waits += disk.lock_waits;
  stats.process_wait_hits += disk.lock_wait_hits;
  stats.process_wait_timeouts += disk.lock_timeouts;
  stats.corrupt_entries += disk.corrupt_total() + bad_metadata_;
  for (size_t i = 0; i < disk.corrupt.size(); ++i) {
    const auto kind = static_cast<cache::Corruption>(i);
    stats.corrupt_by_kind.push_back({std::string(cache::corruption_name(kind)), disk.corrupt[i]});
  }
  stats.corrupt_by_kind.push_back({"metadata", bad_metadata_});
  stats.publish_failures += disk.publish_failures_total();
  stats.publish_failures_by_errno = disk.publish_failures;
  recorder_.add_to(stats);
}

}  // namespace pagejit
