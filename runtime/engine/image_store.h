// ImageStore: source -> compiled image, from memory, from disk, or by a compile; for each key once,
// however many threads and processes ask. It connects the cache (which knows no kernels) with the
// compilers (which know no cache). It loads nothing. Thread-safety: all functions may be called
// from several threads at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/disk_cache.h"
#include "cache/memory_cache.h"
#include "cache/process_lock.h"
#include "cache/single_flight.h"
#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/engine/kernel_dump.h"
#include "runtime/engine/stats_recorder.h"
#include "runtime/jit/compiler.h"
#include "runtime/logger.h"
#include "runtime/metadata.h"

namespace pagejit {

struct StoredImage {
  std::shared_ptr<const cache::Entry> entry;
  KernelMetadata metadata;
  ImageOrigin origin = ImageOrigin::kCompiled;

  const std::string& image() const { return entry->image; }
};

// The compile that a call made itself.
struct CompileRecord {
  bool made = false;   // false: the image was there, or another thread compiled it
  std::string key;     // the name of the entry, where one was or would have been made
  double wall_ms = 0;  // of waiting for a compiling thread and compiling
};

class ImageStore {
 public:
  // The directory and the callbacks of `disk` are set here.
  ImageStore(const EngineOptions& options, std::shared_ptr<const Logger> logger,
             cache::DiskCacheOptions disk = {});

  // An image for `source`. The key needs the compiler's identity; where there is no compiler, the
  // entry on disk that the newest compiler made of the same source is taken. Errors are the
  // compiler's: kCompilerUnavailable (also where nothing is stored and there is no compiler),
  // kUnsupported (a target it does not know), kCompileFailed.
  Result<StoredImage> acquire(const KernelSource& source, Compiler& compiler,
                              CompileRecord* record);

  // What acquire() would find without compiling and without opening the compiler; it waits for no
  // other thread's compile. *key: the name that was looked for, or its part before the dot where
  // the compiler is not known.
  std::optional<StoredImage> find(const KernelSource& source, Compiler& compiler, std::string* key);

  // The driver refused this stored image: sets it aside and compiles anew, unless another thread
  // or process has replaced it meanwhile.
  Result<StoredImage> replace_rejected(const StoredImage& rejected, const KernelSource& source,
                                       Compiler& compiler, CompileRecord* record);
  // The same without compiling.
  void discard_rejected(const StoredImage& rejected) { set_aside(*rejected.entry); }

  // Fills the fields that are counted here.
  void add_to(EngineStats& stats) const;
  // The engine's times; those of loading are recorded by whoever loads.
  StatsRecorder& recorder() { return recorder_; }

 private:
  using Shared = std::shared_ptr<const StoredImage>;
  using Flight = cache::SingleFlight<Shared>;

  Shared lookup(const cache::Key& key, const KernelSource& source);
  Shared lookup_any_compiler(const cache::Key& key, const KernelSource& source);
  Shared accept(const cache::LookupResult& found, const KernelSource& source);
  // Another image than the rejected one, under the same key.
  Shared lookup_replacement(const cache::Key& key, const StoredImage& rejected,
                            const KernelSource& source);
  // Either of them, by whether the compiler is known; its time is recorded.
  Shared lookup_timed(const cache::Key& key, bool any_compiler, const KernelSource& source);
  // Waits for this process's turn to compile: what `find` found meanwhile, or null, and then the
  // lock is taken wherever there is one.
  Shared wait_for_turn(const cache::Key& key, const KernelSource& source,
                       const std::function<Shared()>& find, cache::ProcessLock* lock);
  // Releases the lock when the image is stored.
  Flight::Outcome compile(cache::KeyIngredients ingredients, const KernelSource& source,
                          Compiler& compiler, CompileRecord* record, cache::ProcessLock* lock);
  void set_aside(const cache::Entry& entry);

  std::shared_ptr<const Logger> logger_;
  std::unique_ptr<cache::DiskCache> disk_;
  cache::MemoryCache memory_;
  Flight flights_;
  std::atomic<uint64_t> memory_hits_{0};
  std::atomic<uint64_t> disk_hits_{0};
  std::atomic<uint64_t> compiles_{0};
  std::atomic<uint64_t> compile_failures_{0};
  std::atomic<uint64_t> bad_metadata_{0};
  StatsRecorder recorder_;
  KernelDump dump_;
};

}  // namespace pagejit
