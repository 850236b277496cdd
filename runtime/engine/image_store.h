// ImageStore: source -> compiled image, for each key once, however many threads and processes ask:
// from memory, bundles and read-only directories, the cache directory, a remote, or by a compile.
// It connects the cache (which knows no kernels) with the compilers (which know no cache). It loads
// nothing. Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/memory_cache.h"
#include "cache/process_lock.h"
#include "cache/remote_store.h"
#include "cache/single_flight.h"
#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/engine/kernel_dump.h"
#include "runtime/engine/stats_recorder.h"
#include "runtime/engine/store_layers.h"
#include "runtime/engine/tuned_kernel.h"
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

// What tests and the engine put into a store; defaults make one of memory, the directory and
// compiles alone.
struct ImageStoreParts {
  cache::DiskCacheOptions disk;  // the directory, its limit and the callbacks are set by the store
  cache::SingleFlightOptions flights;
  // Called once, at the first look-up, and, for the second, at the first miss in all else.
  std::function<std::vector<StoreLayer>()> open_layers;
  std::function<std::unique_ptr<cache::RemoteStore>()> open_remote;
};

class ImageStore {
 public:
  ImageStore(const EngineOptions& options, std::shared_ptr<const Logger> logger,
             ImageStoreParts parts = {});

  // An image for `source`: from memory, the directory, a remote, or by a compile. What the layers
  // before the directory hold is find_ahead()'s, which is asked first. The key needs the compiler's
  // identity; where there is no compiler, the entry on disk that the newest compiler made of the
  // same source is taken. Errors are the compiler's: kCompilerUnavailable (also where nothing is
  // stored and there is no compiler), kUnsupported (a target it does not know), kCompileFailed.
  // kCompileFailed is kept (for some hundred keys), kCompilerUnavailable for 5 s: meanwhile nothing
  // is compiled for that key. kCancelled where job.stop is requested; the compile goes on for other
  // callers.
  Result<StoredImage> acquire(const KernelSource& source, Compiler& compiler, CompileRecord* record,
                              const jit::JobOptions& job = {});

  // What find_ahead() and acquire() would find without compiling and without opening the compiler;
  // it waits for no other thread's compile, though for a remote. *key: the name that was looked
  // for, or its part before the dot where the compiler is not known.
  std::optional<StoredImage> find(const KernelSource& source, Compiler& compiler, std::string* key);

  // What memory and the layers before the cache directory hold of it. Whose entry serves is the
  // same as for acquire(): the compiler's, which is opened where only that tells which it is; any
  // compiler's where there is none.
  std::optional<StoredImage> find_ahead(const KernelSource& source, Compiler& compiler);
  // Whether there are such layers.
  bool has_layers();

  // The tuned records under that name in the layers before the cache directory and in it, in this
  // order: never the remote. What is no such record is counted, and in the directory set aside.
  std::vector<FoundRecord> find_records(std::string_view spec, const Target& target,
                                        std::string_view device);
  // Of all devices, each one's first.
  std::vector<FoundRecord> find_records(std::string_view spec, const Target& target);

  // The driver refused this stored image: sets it aside and compiles anew, unless another thread
  // or process has replaced it meanwhile.
  Result<StoredImage> replace_rejected(const StoredImage& rejected, const KernelSource& source,
                                       Compiler& compiler, CompileRecord* record,
                                       const jit::JobOptions& job = {});
  // The same without compiling.
  void discard_rejected(const StoredImage& rejected) { set_aside(*rejected.entry); }

  // Waits a little for uploads, so that they are counted.
  void flush_remote();
  // Fills the fields that are counted here.
  void add_to(EngineStats& stats) const;
  // The engine's times; those of loading are recorded by whoever loads.
  StatsRecorder& recorder() { return recorder_; }
  const StatsRecorder& recorder() const { return recorder_; }

 private:
  using Shared = std::shared_ptr<const StoredImage>;
  using Flight = cache::SingleFlight<Shared>;

  // What is looked for. Without a compiler the part C of the key means nothing, and an entry of any
  // compiler will do.
  struct Wanted {
    cache::Key key;
    bool has_compiler = false;
  };
  static Wanted wanted_of(const cache::KeyIngredients& ingredients,
                          const Result<std::string>& identity);
  static cache::LookupResult look_in(cache::Layer& layer, const Wanted& wanted,
                                     const KernelSource& source);

  const std::vector<StoreLayer>& layers();
  cache::RemoteStore* remote();  // null where there is none
  Shared lookup_in_memory(const Wanted& wanted);
  // Memory, then the layers before the directory.
  Shared lookup_ahead(const Wanted& wanted, const KernelSource& source);
  // Memory, then the directory.
  Shared lookup_own(const Wanted& wanted, const KernelSource& source);
  // From the remote, into the directory.
  Shared fetch(const Wanted& wanted, const KernelSource& source);
  void store(const cache::Entry& entry);
  bool may_cross_network(const Target& target) const;
  // The image of a hit, unless it is not of this kernel after all.
  Shared accept(const cache::LookupResult& found, const KernelSource& source, ImageOrigin origin);
  void take_record(const cache::LookupResult& found, ImageOrigin origin,
                   std::vector<FoundRecord>* records);
  // Another image than the rejected one, under the same key.
  Shared lookup_replacement(const cache::Key& key, const StoredImage& rejected,
                            const KernelSource& source);
  // Waits for this process's turn to compile: what `find` found meanwhile, or null, and then the
  // lock is taken wherever there is one. kCancelled as soon as a stop is requested.
  Result<Shared> wait_for_turn(const cache::Key& key, const KernelSource& source,
                               const std::function<Shared()>& find, const std::stop_token& stop,
                               cache::ProcessLock* lock);
  // Releases the lock when the image is stored.
  Flight::Outcome compile(cache::KeyIngredients ingredients, const KernelSource& source,
                          Compiler& compiler, CompileRecord* record, const jit::JobOptions& job,
                          cache::ProcessLock* lock);
  void set_aside(const cache::Entry& entry);
  void add_remote_to(EngineStats& stats) const;

  std::shared_ptr<const Logger> logger_;
  cache::MemoryCache memory_;
  const std::function<std::vector<StoreLayer>()> open_layers_;
  std::once_flag layers_opened_;
  std::vector<StoreLayer> layers_;  // never changed after layers_opened_
  std::unique_ptr<cache::DiskCache> disk_;
  const std::function<std::unique_ptr<cache::RemoteStore>()> open_remote_;
  const bool requires_signed_;
  std::once_flag remote_opened_;
  std::unique_ptr<cache::RemoteStore> remote_;  // never changed after remote_opened_
  std::atomic<bool> is_remote_open_{false};     // for those who do not open it
  Flight flights_;
  std::array<std::atomic<uint64_t>, kNumImageOrigins> hits_{};
  std::array<std::atomic<uint64_t>, cache::kNumCorruptions> layers_corrupt_{};
  std::atomic<uint64_t> compiles_{0};
  std::atomic<uint64_t> compile_failures_{0};
  std::atomic<uint64_t> compiles_cancelled_{0};
  std::atomic<uint64_t> bad_metadata_{0};
  StatsRecorder recorder_;
  KernelDump dump_;
};

}  // namespace pagejit
