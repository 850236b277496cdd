#include "pagejit/engine.h"

#include <utility>

#include "runtime/engine/dependencies.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/guard.h"
#include "runtime/engine/loaded_cascade.h"
#include "runtime/engine/loaded_sparse_attention.h"
#include "runtime/engine/swap_blocks.h"
#include "runtime/format.h"

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

}  // namespace

struct EngineFactory {
  static Result<std::shared_ptr<Engine>> create(EngineOptions options,
                                                EngineDependencies dependencies) {
    if (Status status = check_options(options); !status) return status;
    auto impl = std::make_unique<Engine::Impl>(std::move(options), std::move(dependencies));
    return std::shared_ptr<Engine>(new Engine(std::move(impl)));
  }
};

Result<std::shared_ptr<Engine>> create_engine(EngineOptions options,
                                              EngineDependencies dependencies) {
  return guarded(
      [&] { return EngineFactory::create(std::move(options), std::move(dependencies)); });
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

template <class Handle, class Spec>
Result<Handle> Engine::prepare_handle(const Spec& spec, int device, Stream stream) {
  return guarded([&]() -> Result<Handle> {
    Result<PreparedKernel> prepared = impl_->prepare(spec, device, stream);
    if (!prepared) return prepared.status();
    Handle made;
    KernelHandle& handle = made;
    handle.loaded_ = std::move(prepared->kernel);
    handle.info_ = std::make_shared<const KernelInfo>(std::move(prepared->info));
    return made;
  });
}

Result<Kernel> Engine::prepare(const KernelSpec& spec, int device, Stream stream) {
  return prepare_handle<Kernel>(spec, device, stream);
}

template <KernelFamily Spec>
Result<typename Spec::Handle> Engine::prepare(const Spec& spec, int device, Stream stream) {
  return prepare_handle<typename Spec::Handle>(spec, device, stream);
}

Result<KernelInfo> Engine::precompile(const KernelSpec& spec, const Target& target) {
  return guarded([&] { return impl_->precompile(spec, target); });
}

template <KernelFamily Spec>
Result<KernelInfo> Engine::precompile(const Spec& spec, const Target& target) {
  return guarded([&] { return impl_->precompile(spec, target); });
}

Result<std::string> Engine::render(const KernelSpec& spec, const Target& target) const {
  return guarded([&] { return impl_->render_text(spec, target); });
}

template <KernelFamily Spec>
Result<std::string> Engine::render(const Spec& spec, const Target& target) const {
  return guarded([&] { return impl_->render_text(spec, target); });
}

#define PAGEJIT_FAMILY(Spec)                                                                 \
  template PAGEJIT_EXPORT Result<Spec::Handle> Engine::prepare(const Spec&, int, Stream);    \
  template PAGEJIT_EXPORT Result<KernelInfo> Engine::precompile(const Spec&, const Target&); \
  template PAGEJIT_EXPORT Result<std::string> Engine::render(const Spec&, const Target&) const;
PAGEJIT_FAMILY(MergeStatesSpec)
PAGEJIT_FAMILY(CacheWriteSpec)
PAGEJIT_FAMILY(CopyBlocksSpec)
PAGEJIT_FAMILY(GatherCacheSpec)
PAGEJIT_FAMILY(ConvertFloat8Spec)
PAGEJIT_FAMILY(MlaCacheWriteSpec)
PAGEJIT_FAMILY(IndexKeyWriteSpec)
PAGEJIT_FAMILY(IndexKeyGatherSpec)
PAGEJIT_FAMILY(IndexLogitsSpec)
PAGEJIT_FAMILY(TopKSpec)
#undef PAGEJIT_FAMILY

template <>
PAGEJIT_EXPORT Result<CascadeKernel> Engine::prepare(const CascadeSpec& spec, int device,
                                                     Stream stream) {
  return guarded([&]() -> Result<CascadeKernel> {
    if (Status status = validate(spec); !status) return status;
    const CascadeParts parts = cascade_parts(spec);
    auto loaded = std::make_shared<LoadedCascade>();
    loaded->spec = spec;
    CascadeInfo& info = loaded->info;
    Status status =
        impl_->prepare_part(parts.prefix, device, stream, &loaded->prefix_kernel, &info.prefix);
    if (status)
      status =
          impl_->prepare_part(parts.suffix, device, stream, &loaded->suffix_kernel, &info.suffix);
    if (status)
      status = impl_->prepare_part(parts.merge, device, stream, &loaded->merge, &info.merge);
    if (!status) return status;
    CascadeKernel made;
    made.loaded_ = std::move(loaded);
    return made;
  });
}

template <>
PAGEJIT_EXPORT Result<CascadeInfo> Engine::precompile(const CascadeSpec& spec,
                                                      const Target& target) {
  return guarded([&]() -> Result<CascadeInfo> {
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
  return guarded([&]() -> Result<SparseAttentionKernel> {
    if (Status status = validate(spec); !status) return status;
    const SparseAttentionParts parts = sparse_attention_parts(spec);
    auto loaded = std::make_shared<LoadedSparseAttention>();
    loaded->spec = spec;
    SparseAttentionInfo& info = loaded->info;
    Status status =
        impl_->prepare_part(parts.logits, device, stream, &loaded->logits, &info.logits);
    if (status)
      status = impl_->prepare_part(parts.top_k, device, stream, &loaded->top_k, &info.top_k);
    if (status)
      status = impl_->prepare_part(parts.attention, device, stream, &loaded->attention_kernel,
                                   &info.attention);
    if (!status) return status;
    SparseAttentionKernel made;
    made.loaded_ = std::move(loaded);
    return made;
  });
}

template <>
PAGEJIT_EXPORT Result<SparseAttentionInfo> Engine::precompile(const SparseAttentionSpec& spec,
                                                              const Target& target) {
  return guarded([&]() -> Result<SparseAttentionInfo> {
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
