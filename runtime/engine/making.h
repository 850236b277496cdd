// Engine::Making: from a spec to a handle, whatever its kind, on the caller's thread or on the
// engine's. Only for engine.cc. Thread-safety: all functions may be called from several threads at
// once.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/families.h"
#include "pagejit/engine.h"
#include "runtime/engine/engine_impl.h"
#include "runtime/engine/loaded_cascade.h"
#include "runtime/engine/loaded_sparse_attention.h"
#include "runtime/format.h"
#include "runtime/guard.h"

namespace pagejit {

struct Engine::Making {
  using Place = Impl::Place;

  // The kernels that a spec stands for.
  template <class Spec>
  static std::vector<AnySpec> parts_of(const Spec& spec) {
    return {spec};
  }
  static std::vector<AnySpec> parts_of(const CascadeSpec& spec) {
    const CascadeParts parts = cascade_parts(spec);
    return {parts.prefix, parts.suffix, parts.merge};
  }
  static std::vector<AnySpec> parts_of(const SparseAttentionSpec& spec) {
    const SparseAttentionParts parts = sparse_attention_parts(spec);
    return {parts.logits, parts.top_k, parts.attention};
  }

  template <class Handle, class Spec>
  static Result<Handle> prepare_at(Impl& impl, const Spec& spec, const Place& place, Stream stream,
                                   const jit::JobOptions& job) {
    Result<PreparedKernel> prepared = impl.prepare_at(spec, place, stream, job);
    if (!prepared) return prepared.status();
    Handle made;
    KernelHandle& handle = made;
    handle.loaded_ = std::move(prepared->kernel);
    handle.info_ = std::make_shared<const KernelInfo>(std::move(prepared->info));
    return made;
  }

  template <class Handle>
  static Result<Handle> prepare_at(Impl& impl, const CascadeSpec& spec, const Place& place,
                                   Stream stream, const jit::JobOptions& job) {
    const CascadeParts parts = cascade_parts(spec);
    auto loaded = std::make_shared<LoadedCascade>();
    loaded->spec = spec;
    CascadeInfo& info = loaded->info;
    Status status =
        impl.prepare_part(parts.prefix, place, stream, job, &loaded->prefix_kernel, &info.prefix);
    if (status) {
      status =
          impl.prepare_part(parts.suffix, place, stream, job, &loaded->suffix_kernel, &info.suffix);
    }
    if (status) {
      status = impl.prepare_part(parts.merge, place, stream, job, &loaded->merge, &info.merge);
    }
    if (!status) return status;
    CascadeKernel made;
    made.loaded_ = std::move(loaded);
    return made;
  }

  template <class Handle>
  static Result<Handle> prepare_at(Impl& impl, const SparseAttentionSpec& spec, const Place& place,
                                   Stream stream, const jit::JobOptions& job) {
    const SparseAttentionParts parts = sparse_attention_parts(spec);
    auto loaded = std::make_shared<LoadedSparseAttention>();
    loaded->spec = spec;
    SparseAttentionInfo& info = loaded->info;
    Status status =
        impl.prepare_part(parts.logits, place, stream, job, &loaded->logits, &info.logits);
    if (status) {
      status = impl.prepare_part(parts.top_k, place, stream, job, &loaded->top_k, &info.top_k);
    }
    if (status) {
      status = impl.prepare_part(parts.attention, place, stream, job, &loaded->attention_kernel,
                                 &info.attention);
    }
    if (!status) return status;
    SparseAttentionKernel made;
    made.loaded_ = std::move(loaded);
    return made;
  }

  template <class Handle, class Spec>
  static Result<Handle> prepare(Impl& impl, const Spec& spec, int device, Stream stream) {
    if (Status status = validate(spec); !status) return status;
    Result<Place> place = impl.place_of(device);
    if (!place) return place.status();
    return prepare_at<Handle>(impl, spec, *place, stream, {});
  }

  template <class Handle, class Spec>
  static Result<Pending<Handle>> start(Impl& impl, const Spec& spec, int device,
                                       PrepareOptions<Handle> options) {
    if (Status status = validate(spec); !status) return status;
    if (Status status = impl.check_driver_process(); !status) return status;
    const CallScope scope(*impl.calls);
    if (!scope.status()) return scope.status();
    // What only this thread knows, or may not wait.
    std::optional<Place> known;
    std::string where = format("{}", device);
    if (device < 0 || options.stream != nullptr) {
      Result<Place> place = impl.place_of(device);
      if (!place) return place.status();
      if (options.stream != nullptr) {
        for (const AnySpec& part : parts_of(spec)) {
          if (Status status = impl.refuse_in_capture(part, *place, options.stream); !status) {
            return status;
          }
        }
      }
      known = std::move(place).value();
      if (device < 0) where = format("context {}", known->where.context_id);
    }
    auto state = std::make_shared<typename Pending<Handle>::State>(std::move(options.on_done));
    impl.async.start<Handle>(
        canonical_text(spec) + " @" + where, options.priority, state,
        [&impl, spec, device, known](const jit::JobOptions& job) {
          return guarded([&]() -> Result<Handle> {
            Result<Place> place = known ? Result<Place>(*known) : impl.place_of(device);
            if (!place) return place.status().with_spec(canonical_text(spec));
            Result<Handle> made = prepare_at<Handle>(impl, spec, *place, nullptr, job);
            if (made) return made;
            return made.status().with_spec(canonical_text(spec));
          });
        });
    return Pending<Handle>(std::move(state));
  }
};

}  // namespace pagejit
