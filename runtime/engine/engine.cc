#include "pagejit/engine.h"

#include <exception>
#include <thread>
#include <utility>

#include "runtime/engine/dependencies.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/families.h"
#include "runtime/engine/making.h"
#include "runtime/engine/stored_kernel.h"
#include "runtime/engine/swap_blocks.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {
namespace {

Status check_options(const EngineOptions& options) {
  if (options.compile_threads < 0) {
    return Status(StatusCode::kInvalidArgument,
                  format("compile_threads {}: must be 0 (chosen by the library) or positive",
                         options.compile_threads));
  }
  return {};
}

// guarded(), and a failure knows of which kernel it is.
template <class Spec, class Function>
auto answered(const Spec& spec, Function&& function) noexcept -> decltype(function()) {
  auto answer = guarded(std::forward<Function>(function));
  if (answer.is_ok()) return answer;
  return guarded(
      [&]() -> decltype(function()) { return answer.status().with_spec(canonical_text(spec)); });
}

}  // namespace

struct EngineFactory {
  static Result<std::shared_ptr<Engine>> create(EngineOptions options,
                                                EngineDependencies dependencies) {
    if (Status status = check_options(options); !status) return status;
    Result<Trust> trust = make_trust(options);
    if (!trust) return trust.status();
    auto impl = std::make_unique<Engine::Impl>(std::move(options), std::move(dependencies),
                                               std::move(trust).value());
    return std::shared_ptr<Engine>(new Engine(std::move(impl)), end);
  }
  // The last reference may go in a callback on a thread of the engine's own: one that used the
  // engine while all others let it go. The end waits for that thread, so another one sees to it.
  static void end(Engine* engine) {
    if (!engine->impl_->async.is_own_thread()) {
      delete engine;
      return;
    }
    try {
      std::thread([engine] { delete engine; }).detach();
    } catch (const std::exception&) {  // no thread: it stays
    }
  }
  static Engine::Impl& impl_of(Engine& engine) { return *engine.impl_; }
};

Result<StoredKernel> find_stored(Engine& engine, const AnySpec& spec, const Target& target) {
  return guarded([&] { return EngineFactory::impl_of(engine).find_stored(spec, target); });
}

Result<KernelInfo> precompile_any(Engine& engine, const AnySpec& spec, const Target& target) {
  return guarded([&] { return EngineFactory::impl_of(engine).precompile(spec, target); });
}

Result<std::vector<TunedKernel>> find_tuned(Engine& engine, const KernelSpec& spec,
                                            const Target& target) {
  return guarded([&] { return EngineFactory::impl_of(engine).find_tuned(spec, target); });
}

Result<std::shared_ptr<Engine>> create_engine(EngineOptions options,
                                              EngineDependencies dependencies) {
  return guarded(
      [&] { return EngineFactory::create(std::move(options), std::move(dependencies)); });
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() {
  // Whatever is in there is the parent's: locks, threads, kernels on its GPU.
  if (impl_ != nullptr && impl_->is_lost_in_fork()) (void)impl_.release();
}

Result<Kernel> Engine::prepare(const KernelSpec& spec, int device, Stream stream) {
  return answered(spec, [&] { return Making::prepare<Kernel>(*impl_, spec, device, stream); });
}

template <KernelFamily Spec>
Result<typename Spec::Handle> Engine::prepare(const Spec& spec, int device, Stream stream) {
  return answered(
      spec, [&] { return Making::prepare<typename Spec::Handle>(*impl_, spec, device, stream); });
}

Result<Pending<Kernel>> Engine::prepare_async(const KernelSpec& spec, int device,
                                              PrepareOptions<Kernel> async_options) {
  return answered(
      spec, [&] { return Making::start<Kernel>(*impl_, spec, device, std::move(async_options)); });
}

template <KernelFamily Spec>
Result<Pending<typename Spec::Handle>> Engine::prepare_async(
    const Spec& spec, int device, PrepareOptions<typename Spec::Handle> async_options) {
  return answered(spec, [&] {
    return Making::start<typename Spec::Handle>(*impl_, spec, device, std::move(async_options));
  });
}

Result<KernelInfo> Engine::precompile(const KernelSpec& spec, const Target& target) {
  return answered(spec, [&] { return impl_->precompile(spec, target); });
}

template <KernelFamily Spec>
Result<KernelInfo> Engine::precompile(const Spec& spec, const Target& target) {
  return answered(spec, [&] { return impl_->precompile(spec, target); });
}

Result<std::string> Engine::render(const KernelSpec& spec, const Target& target) const {
  return answered(spec, [&] { return impl_->render_text(spec, target); });
}

template <KernelFamily Spec>
Result<std::string> Engine::render(const Spec& spec, const Target& target) const {
  return answered(spec, [&] { return impl_->render_text(spec, target); });
}

#define PAGEJIT_FAMILY(Spec)                                                                       \
  template PAGEJIT_EXPORT_INSTANCE Result<Spec::Handle> Engine::prepare(const Spec&, int, Stream); \
  template PAGEJIT_EXPORT_INSTANCE Result<Pending<Spec::Handle>> Engine::prepare_async(            \
      const Spec&, int, PrepareOptions<Spec::Handle>);                                             \
  template PAGEJIT_EXPORT_INSTANCE Result<KernelInfo> Engine::precompile(const Spec&,              \
                                                                         const Target&);           \
  template PAGEJIT_EXPORT_INSTANCE Result<std::string> Engine::render(const Spec&, const Target&)  \
      const;
PAGEJIT_EACH_FAMILY(PAGEJIT_FAMILY)
#undef PAGEJIT_FAMILY

template <>
PAGEJIT_EXPORT Result<CascadeKernel> Engine::prepare(const CascadeSpec& spec, int device,
                                                     Stream stream) {
  return answered(spec,
                  [&] { return Making::prepare<CascadeKernel>(*impl_, spec, device, stream); });
}

template <>
PAGEJIT_EXPORT Result<Pending<CascadeKernel>> Engine::prepare_async(
    const CascadeSpec& spec, int device, PrepareOptions<CascadeKernel> async_options) {
  return answered(spec, [&] {
    return Making::start<CascadeKernel>(*impl_, spec, device, std::move(async_options));
  });
}

template <>
PAGEJIT_EXPORT Result<CascadeInfo> Engine::precompile(const CascadeSpec& spec,
                                                      const Target& target) {
  return answered(spec, [&]() -> Result<CascadeInfo> {
    if (Status status = validate(spec); !status) return status;
    const CascadeParts parts = cascade_parts(spec);
    CascadeInfo info;
    Status status = impl_->precompile_part(parts.prefix, target, &info.prefix);
    if (status) status = impl_->precompile_part(parts.suffix, target, &info.suffix);
    if (status) status = impl_->precompile_part(parts.merge, target, &info.merge);
    if (!status) return status;
    return info;
  });
}

template <>
PAGEJIT_EXPORT Result<SparseAttentionKernel> Engine::prepare(const SparseAttentionSpec& spec,
                                                             int device, Stream stream) {
  return answered(
      spec, [&] { return Making::prepare<SparseAttentionKernel>(*impl_, spec, device, stream); });
}

template <>
PAGEJIT_EXPORT Result<Pending<SparseAttentionKernel>> Engine::prepare_async(
    const SparseAttentionSpec& spec, int device,
    PrepareOptions<SparseAttentionKernel> async_options) {
  return answered(spec, [&] {
    return Making::start<SparseAttentionKernel>(*impl_, spec, device, std::move(async_options));
  });
}

template <>
PAGEJIT_EXPORT Result<SparseAttentionInfo> Engine::precompile(const SparseAttentionSpec& spec,
                                                              const Target& target) {
  return answered(spec, [&]() -> Result<SparseAttentionInfo> {
    if (Status status = validate(spec); !status) return status;
    const SparseAttentionParts parts = sparse_attention_parts(spec);
    SparseAttentionInfo info;
    Status status = impl_->precompile_part(parts.logits, target, &info.logits);
    if (status) status = impl_->precompile_part(parts.top_k, target, &info.top_k);
    if (status) status = impl_->precompile_part(parts.attention, target, &info.attention);
    if (!status) return status;
    return info;
  });
}

Status Engine::swap_blocks(const SwapBlocksArgs& args, Stream stream) {
  return guarded([&]() -> Status {
    Result<Engine::Impl::OpenDriver> opened = impl_->open_driver();
    if (!opened) return opened.status();
    return pagejit::swap_blocks(*opened->driver, args, stream);
  });
}

Result<Target> Engine::target_of_device(int device) {
  return guarded([&] { return impl_->target_of_device(device); });
}

EngineStats Engine::stats() const { return impl_->stats(); }

}  // namespace pagejit
