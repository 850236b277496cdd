// Engine: makes kernels (render, compile, cache, load) and hands out handles that launch them.
// Thread-safety: Engine and Kernel may be used from any number of threads at once; two engines in
// one process are independent. One engine serves every device and context of the process.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "pagejit/async.h"
#include "pagejit/cache_ops.h"
#include "pagejit/cache_write.h"
#include "pagejit/cascade.h"
#include "pagejit/export.h"
#include "pagejit/indexer.h"
#include "pagejit/kernel_handle.h"
#include "pagejit/launch.h"
#include "pagejit/merge_states.h"
#include "pagejit/mla_cache.h"
#include "pagejit/options.h"
#include "pagejit/sparse_attention.h"
#include "pagejit/spec.h"
#include "pagejit/stats.h"
#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// A launchable attention kernel on one device.
class PAGEJIT_EXPORT Kernel : public KernelHandle {
 public:
  // Enqueues one launch on `stream`. Never allocates, locks, looks anything up or reads device
  // memory on success; safe during stream capture. The current context must belong to the device of
  // prepare(); call prepare() once in each context. num_seqs 0 launches nothing. kInvalidArgument,
  // kWorkspace, kDriverError.
  Status launch(const AttentionArgs& args, Stream stream) const;

  // The number of splits that launch() uses for these shapes when args.num_splits is 0. At least 1.
  // max_seq_len in tokens, the upper bound as in AttentionArgs. 1 of an empty handle and where a
  // count is below 1; launch()'s upper limits are not checked, here and below.
  int choose_num_splits(int num_seqs, int num_kv_heads, int64_t max_seq_len) const;

  // Bytes of workspace that launch() needs; 0 where it needs none, of an empty handle, and where
  // num_seqs or num_kv_heads is below 1. num_splits 0 = as chosen.
  size_t workspace_bytes(int num_seqs, int num_kv_heads, int64_t max_seq_len,
                         int num_splits = 0) const;

  // The same two by the counts of a launch's arguments; no pointer is looked at. Where the spec's
  // queries are shared these are the ones to ask, since each tile of rows is split: with the others
  // num_seqs stands for tiles.
  int choose_num_splits(const AttentionArgs& args) const;
  size_t workspace_bytes(const AttentionArgs& args) const;

  // Bytes of workspace that are enough for every launch that leaves num_splits to the library,
  // whatever its shapes. A few MB: a launch that is split has at most four partial results per CTA
  // that the device holds at once. 0 of an empty handle.
  size_t max_workspace_bytes() const;

  // Enqueues the one-time initialisation of a workspace on `stream`: of its header and counters,
  // the first 262,400 bytes; none is smaller. kWorkspace where it is null, smaller than that or not
  // 256-byte aligned; kInvalidArgument of an empty handle; kDriverError.
  Status workspace_init(void* workspace, size_t workspace_bytes, Stream stream) const;

  // Synchronises `stream` and reads what debug kernels reported in this workspace: ok, or
  // kDeviceCheckFailed with the first bad value and its place. The report is cleared. kWorkspace
  // where it is null or misaligned, or nothing is reported and it was not initialised;
  // kInvalidArgument of an empty handle; kDriverError.
  Status read_debug_report(void* workspace, Stream stream) const;

  // Of an empty handle: default values.
  const KernelSpec& spec() const;
};

class PAGEJIT_EXPORT Engine {
 public:
  // Opens no library and no file: that happens at first need. kInvalidArgument: compile_threads
  // below 0, a malformed trusted key, require_signed without one.
  static Result<std::shared_ptr<Engine>> create(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A handle for `spec` on a device: from memory, bundles, read-only directories, the cache
  // directory, the remote, or compiled. device -1 = the device of the current context (a context is
  // required); >= 0 = that ordinal, whose primary context is retained. Concurrent calls for one key
  // compile once, in all processes that share the cache directory. Without a compiler a stored
  // kernel of any compiler is taken. Kernels stay loaded when no handle is left, up to about a
  // thousand of them; then the least recently prepared are unloaded.
  //
  // kInvalidArgument: the spec, a device below -1, -1 without a current context. kUnsupported: the
  // spec, in itself or on this GPU and with this compiler. kNotFound: no such device.
  // kDriverUnavailable, kDriverError. kCompilerUnavailable, kCompileFailed: where it is not stored.
  // An unusable or damaged cache is no failure.
  //
  // kDenied where nothing is stored and EngineOptions::jit forbids compiling. Then no compiler is
  // opened, so that it is not known which targets it serves: a stored kernel of any target of the
  // ladder is taken.
  //
  // stream: while it is being captured, nothing is compiled or loaded, which would break the
  // capture; a kernel that is not yet ready in the context of `device` is kDenied. Null: not looked
  // at.
  Result<Kernel> prepare(const KernelSpec& spec, int device = -1, Stream stream = nullptr);
  // The same for the other families: MergeStatesSpec (merge_states.h), CacheWriteSpec
  // (cache_write.h), CopyBlocksSpec, GatherCacheSpec and ConvertFloat8Spec (cache_ops.h),
  // MlaCacheWriteSpec (mla_cache.h), IndexKeyWriteSpec, IndexKeyGatherSpec, IndexLogitsSpec and
  // TopKSpec (indexer.h).
  template <KernelFamily Spec>
  Result<typename Spec::Handle> prepare(const Spec& spec, int device = -1, Stream stream = nullptr);
  // The kernels of a cascade (cascade.h), together.
  template <std::same_as<CascadeSpec> Spec>
  Result<CascadeKernel> prepare(const Spec& spec, int device = -1, Stream stream = nullptr);
  // Those of sparse attention (sparse_attention.h).
  template <std::same_as<SparseAttentionSpec> Spec>
  Result<SparseAttentionKernel> prepare(const Spec& spec, int device = -1, Stream stream = nullptr);

  // As prepare(), but returns at once: rendering, looking up, compiling and loading happen on
  // threads of the engine (at most compile_threads and two more), one request at a time for each
  // kernel and place; whoever asks again joins it. Errors of the spec, of a device of -1 and of a
  // stream that is being captured are returned here, all others, and kCancelled, come with the
  // result. The kernel of device -1 is prepared in the context that is current now, which must live
  // until there is a result. Destroying the engine cancels what is not done.
  Result<Pending<Kernel>> prepare_async(const KernelSpec& spec, int device = -1,
                                        PrepareOptions<Kernel> async_options = {});
  template <KernelFamily Spec>
  Result<Pending<typename Spec::Handle>> prepare_async(
      const Spec& spec, int device = -1, PrepareOptions<typename Spec::Handle> async_options = {});
  // Their kernels one after the other.
  template <std::same_as<CascadeSpec> Spec>
  Result<Pending<CascadeKernel>> prepare_async(const Spec& spec, int device = -1,
                                               PrepareOptions<CascadeKernel> async_options = {});
  template <std::same_as<SparseAttentionSpec> Spec>
  Result<Pending<SparseAttentionKernel>> prepare_async(
      const Spec& spec, int device = -1, PrepareOptions<SparseAttentionKernel> async_options = {});

  // Makes the kernel for `target` and stores it in the cache; needs no driver and no GPU. Compiles
  // whatever EngineOptions::jit says. kInvalidArgument (the spec), kUnsupported (the spec or the
  // target), kCompilerUnavailable, kCompileFailed.
  Result<KernelInfo> precompile(const KernelSpec& spec, const Target& target);
  template <KernelFamily Spec>
  Result<KernelInfo> precompile(const Spec& spec, const Target& target);
  template <std::same_as<CascadeSpec> Spec>
  Result<CascadeInfo> precompile(const Spec& spec, const Target& target);
  template <std::same_as<SparseAttentionSpec> Spec>
  Result<SparseAttentionInfo> precompile(const Spec& spec, const Target& target);

  // The source that precompile() would compile. kInvalidArgument, kUnsupported.
  Result<std::string> render(const KernelSpec& spec, const Target& target) const;
  template <KernelFamily Spec>
  Result<std::string> render(const Spec& spec, const Target& target) const;

  // The target that prepare() compiles for on this device, which is given as to prepare() (see
  // README, "Targets"). kInvalidArgument, kNotFound, kDriverUnavailable, kDriverError; kUnsupported
  // where neither this library nor the compiler has one; kCompilerUnavailable only in a forked
  // child.
  Result<Target> target_of_device(int device);

  // Enqueues the copies of `args` on `stream`, whose context must be current: the driver's own, in
  // one call where it knows batches of copies. kInvalidArgument, kDriverUnavailable, kDriverError.
  Status swap_blocks(const SwapBlocksArgs& args, Stream stream);

  EngineStats stats() const;

 private:
  friend struct EngineFactory;  // internal
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  struct Making;  // internal: the handles, from what the Impl makes
  std::unique_ptr<Impl> impl_;
};

template <>
PAGEJIT_EXPORT Result<CascadeKernel> Engine::prepare(const CascadeSpec& spec, int device,
                                                     Stream stream);
template <>
PAGEJIT_EXPORT Result<Pending<CascadeKernel>> Engine::prepare_async(
    const CascadeSpec& spec, int device, PrepareOptions<CascadeKernel> async_options);
template <>
PAGEJIT_EXPORT Result<Pending<SparseAttentionKernel>> Engine::prepare_async(
    const SparseAttentionSpec& spec, int device,
    PrepareOptions<SparseAttentionKernel> async_options);
template <>
PAGEJIT_EXPORT Result<CascadeInfo> Engine::precompile(const CascadeSpec& spec,
                                                      const Target& target);
template <>
PAGEJIT_EXPORT Result<SparseAttentionKernel> Engine::prepare(const SparseAttentionSpec& spec,
                                                             int device, Stream stream);
template <>
PAGEJIT_EXPORT Result<SparseAttentionInfo> Engine::precompile(const SparseAttentionSpec& spec,
                                                              const Target& target);

}  // namespace pagejit
