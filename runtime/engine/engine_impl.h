// Engine::Impl: the engine's parts, and the way from a spec to a loaded kernel.
// Thread-safety: all functions may be called from several threads at once.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "pagejit/engine.h"
#include "runtime/engine/async_prepares.h"
#include "runtime/engine/call_count.h"
#include "runtime/engine/dependencies.h"
#include "runtime/engine/device.h"
#include "runtime/engine/image_store.h"
#include "runtime/engine/jit_report.h"
#include "runtime/engine/kernel_table.h"
#include "runtime/engine/loaded_kernel.h"
#include "runtime/engine/stats_file.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/engine/trace_recorder.h"
#include "runtime/engine/tuned_kernel.h"

namespace pagejit {

// A loaded kernel and what this call found.
struct PreparedKernel {
  std::shared_ptr<const LoadedKernel> kernel;
  KernelInfo info;
};

// What is told of a kernel, but for the time that it took.
KernelInfo make_info(const KernelSource& source, const StoredImage& image);

// What the engine knows a kernel by: the spec and the device.
std::string table_key(const AnySpec& spec, const DeviceInfo& device);

// Whether another target of the ladder may still do where this one failed.
inline bool may_try_next(const Status& status) {
  return status.code() == StatusCode::kUnsupported ||
         status.code() == StatusCode::kCompilerUnavailable || status.code() == StatusCode::kDenied;
}

struct [[gnu::visibility("hidden")]] Engine::Impl {
  Impl(EngineOptions engine_options, EngineDependencies engine_dependencies, Trust engine_trust);
  ~Impl() { images.flush_remote(); }  // before stats_file is written

  struct OpenDriver {
    std::shared_ptr<const Driver> driver;
    std::shared_ptr<Devices> devices;
  };

  // Where a kernel is prepared.
  struct Place {
    OpenDriver opened;
    DeviceContext where;
  };

  // Whether this process must not use what is in here, not even to destroy it: it was forked from
  // one that had opened the driver, or while another thread was inside.
  bool is_lost_in_fork() const;
  // kDriverUnavailable in a child of the process that opened the driver.
  Status check_driver_process() const;
  Result<Place> place_of(int device);
  Result<PreparedKernel> prepare_at(const AnySpec& spec, const Place& place, Stream stream,
                                    const jit::JobOptions& job);
  // kDenied, with its event, where prepare_at() would be refused because of a capture.
  Status refuse_in_capture(const AnySpec& spec, const Place& place, Stream stream);
  Result<KernelInfo> precompile(const AnySpec& spec, const Target& target);
  Result<StoredKernel> find_stored(const AnySpec& spec, const Target& target);
  Result<std::vector<TunedKernel>> find_tuned(const KernelSpec& spec, const Target& target);
  // Of a kernel that others are launched together with.
  Status prepare_part(const AnySpec& spec, const Place& place, Stream stream,
                      const jit::JobOptions& job, std::shared_ptr<const LoadedKernel>* kernel,
                      KernelInfo* info);
  Status precompile_part(const AnySpec& spec, const Target& target, KernelInfo* info);
  Result<KernelSource> render(const AnySpec& spec, const Target& target) const;
  Result<std::string> render_text(const AnySpec& spec, const Target& target) const;
  Result<Target> target_of_device(int device);
  EngineStats stats() const;

  // An image and the source it was made of.
  struct Acquired {
    KernelSource source;
    StoredImage image;
    bool is_tuned = false;  // by a record, not planned
  };
  // What was decided for a spec on a device, once in the engine's life: a record that comes later
  // changes nothing, and the image stays in memory as long as it is the choice.
  struct TunedSlot {
    std::once_flag decided;
    std::optional<Acquired> choice;       // nothing: the planner's
    std::atomic<bool> is_refused{false};  // by the driver
  };

  ImageStoreParts store_parts();
  Compiler& compiler_for(const Target& target);
  Result<OpenDriver> open_driver();
  Result<std::vector<Target>> targets_of(const DeviceInfo& device, const Driver& driver) const;
  // `device`: where it is to run, and PTX may do in the end; null: nowhere yet.
  Result<Acquired> acquire(const AnySpec& spec, const std::vector<Target>& targets,
                           const DeviceInfo* device, JitReport& report,
                           const jit::JobOptions& job = {});
  // What a tuned record says, where the options allow it and its image is stored.
  std::optional<Acquired> acquire_tuned(const AnySpec& any_spec, const std::vector<Target>& targets,
                                        const Place& place, JitReport& report);
  std::optional<Acquired> choose_tuned(const KernelSpec& spec, const std::vector<Target>& targets,
                                       const std::string& device);
  Result<Acquired> resolve_tuned(const TunedRecord& record, const KernelSpec& spec,
                                 const Target& target);
  std::shared_ptr<TunedSlot> tuned_slot(const std::string& key);
  // render(); kUnsupported too where the kernel takes more shared memory than the device has, of
  // which null says nothing.
  Result<KernelSource> render_for(const AnySpec& spec, const Target& target,
                                  const DeviceInfo* device);
  std::optional<Acquired> acquire_ahead(const AnySpec& spec, const std::vector<Target>& targets,
                                        const DeviceInfo* device, JitReport& report);
  Result<Acquired> acquire_ptx(const AnySpec& spec, const DeviceInfo& device, bool can_be_made,
                               JitReport& report, const jit::JobOptions& job);
  Result<Acquired> acquire_stored(const AnySpec& spec, const std::vector<Target>& targets,
                                  const DeviceInfo* device, JitReport& report);
  Result<StoredImage> acquire_image(const KernelSource& source, JitReport& report,
                                    const jit::JobOptions& job);
  Status check_capture(const OpenDriver& opened, const DeviceContext& where, Stream stream,
                       JitReport& report);
  // What a kernel is loaded for.
  struct LoadCall {
    const AnySpec& spec;
    const std::shared_ptr<const Driver>& driver;
    const DeviceContext& where;
    JitReport& report;
    const jit::JobOptions& job;
  };
  Result<std::shared_ptr<LoadedKernel>> load(const LoadCall& call, Acquired& acquired);
  void refuse_tuned(const LoadCall& call, const Acquired& acquired, const Status& refusal);
  // As stored or, where the driver refuses that, compiled anew. *rejected: it refused that too, or
  // nothing could be compiled.
  Result<std::shared_ptr<LoadedKernel>> load_or_replace(const LoadCall& call, Acquired& acquired,
                                                        bool* rejected);
  Result<std::shared_ptr<LoadedKernel>> load_image(const std::shared_ptr<const Driver>& driver,
                                                   const DeviceContext& where,
                                                   const Acquired& acquired, bool* rejected);

  const EngineOptions options;
  const EngineDependencies dependencies;
  const std::shared_ptr<const Logger> logger;
  const Trust trust;
  TraceRecorder recorder;
  ImageStore images;

  // Entered by every call before any lock is taken.
  const std::shared_ptr<CallCount> calls = std::make_shared<CallCount>();
  // The process that has opened the driver, or is about to; 0 = none.
  std::atomic<pid_t> driver_process{0};
  std::mutex driver_mutex;  // guards open
  OpenDriver open;

  KernelTable kernels;
  std::mutex tuned_mutex;                                             // guards tuned
  std::unordered_map<std::string, std::shared_ptr<TunedSlot>> tuned;  // by table_key()
  // Taken while a kernel is loaded: the driver serialises loads anyway, and so no kernel is loaded
  // twice. Guards modules.
  std::mutex load_mutex;
  std::unordered_map<std::string, std::weak_ptr<LoadedModule>>
      modules;  // by key, for further devices

  std::atomic<uint64_t> table_hits{0};
  std::atomic<uint64_t> driver_rejects{0};
  std::atomic<uint64_t> modules_loaded{0};
  std::atomic<uint64_t> denied_by_policy{0};
  std::atomic<uint64_t> denied_in_capture{0};

  StatsFile stats_file;  // destroyed after `async`: it reads the rest
  // Destroyed first: its jobs use the rest.
  AsyncPrepares async;
};

}  // namespace pagejit
