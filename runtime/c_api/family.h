// What the C functions of all families of kernels do, for a Family of families.h. Thread-safety:
// free functions without state.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "pagejit/engine.h"
#include "runtime/c_api/types.h"

namespace pagejit::c_api {

struct EngineObject {
  std::shared_ptr<Engine> engine;
};

template <class Function>
Status with_engine(const pagejit_engine* engine, Function&& function) {
  return with<EngineObject>(Kind::kEngine, engine,
                            [&](EngineObject& object) { return function(*object.engine); });
}

// A Pending of any family.
class PendingObject {
 public:
  explicit PendingObject(Kind kernel_kind) : kernel_kind_(kernel_kind) {}
  virtual ~PendingObject() = default;
  PendingObject(const PendingObject&) = delete;
  PendingObject& operator=(const PendingObject&) = delete;

  virtual bool wait_for(std::chrono::milliseconds timeout) const = 0;
  virtual void cancel() = 0;
  Kind kernel_kind() const { return kernel_kind_; }

 private:
  const Kind kernel_kind_;
};

template <class Handle>
class PendingOf : public PendingObject {
 public:
  explicit PendingOf(Kind kernel_kind) : PendingObject(kernel_kind) {}
  // Before anybody else knows of this object.
  void set(Pending<Handle> pending) { pending_ = std::move(pending); }
  bool wait_for(std::chrono::milliseconds timeout) const override {
    return pending_.wait_for(timeout);
  }
  void cancel() override { pending_.cancel(); }
  Result<Handle> wait() const { return pending_.wait(); }

 private:
  Pending<Handle> pending_;
};

struct PendingHolder {
  std::unique_ptr<PendingObject> pending;
};

// Tells a result to the callback of a prepare_async, by handles that live as long as the call.
class DoneCall {
 public:
  DoneCall(void (*on_done)(void*, pagejit_status, void*, const pagejit_error*), void* user)
      : on_done_(on_done), user_(user) {}

  template <class Handle>
  void operator()(Kind kind, const Result<Handle>& result) const {
    if (result.is_ok()) {
      pagejit_kernel* kernel = nullptr;  // whatever its family
      const Status given = guarded([&] { return hand_out(kind, Handle(*result), &kernel); });
      if (!given) return tell_failure(given);
      on_done_(user_, PAGEJIT_OK, kernel, nullptr);
      (void)close(kind, value_of(kernel));
    } else {
      tell_failure(result.status());
    }
  }

 private:
  void tell_failure(const Status& status) const;
  void (*on_done_)(void*, pagejit_status, void*, const pagejit_error*);
  void* user_;
};

// What a pagejit_prepare_options holds; null is the defaults.
struct AsyncOptions {
  JobPriority priority = JobPriority::kNormal;
  Stream stream = nullptr;
  void (*on_done)(void*, pagejit_status, void*, const pagejit_error*) = nullptr;
  void* user = nullptr;
};
Status to_cpp(const pagejit_prepare_options* from, AsyncOptions* to);

// What is told of a kernel, or of the three of a composition.
inline void fill_infos(const KernelInfo& from, pagejit_kernel_info* to) {
  fill_optional(to, to_c(from));
}
inline void fill_infos(const CascadeInfo& from, pagejit_kernel_info* prefix,
                       pagejit_kernel_info* suffix, pagejit_kernel_info* merge) {
  fill_infos(from.prefix, prefix);
  fill_infos(from.suffix, suffix);
  fill_infos(from.merge, merge);
}
inline void fill_infos(const SparseAttentionInfo& from, pagejit_kernel_info* logits,
                       pagejit_kernel_info* top_k, pagejit_kernel_info* attention) {
  fill_infos(from.logits, logits);
  fill_infos(from.top_k, top_k);
  fill_infos(from.attention, attention);
}
template <class... Infos>
Status check_infos(const Infos*... infos) {
  Status checked;
  ((checked = checked ? check_optional_output("pagejit_kernel_info", infos) : checked), ...);
  return checked;
}

// ---- Structs ----

template <class Family>
pagejit_status init_spec(typename Family::CSpec* spec, size_t struct_size) noexcept {
  return init_struct(spec, struct_size, Family::to_c(typename Family::Spec{}));
}

template <class Family>
pagejit_status init_args(typename Family::CArgs* args, size_t struct_size) noexcept {
  return init_struct(args, struct_size, Family::default_args());
}

// ---- A spec ----

// Calls `function` with the spec; a failure knows of which one it is.
template <class Family, class Function>
Status with_spec(const typename Family::CSpec* given, Function&& function) {
  typename Family::Spec spec;
  if (Status s = Family::to_cpp(given, &spec); !s) return s;
  Status status = function(spec);
  if (status.is_ok() || !status.facts().spec.empty()) return status;
  return status.with_spec(canonical_text(spec));
}

template <class Family>
pagejit_status spec_validate(const typename Family::CSpec* given, pagejit_error* error) noexcept {
  return call(error, [&] {
    return with_spec<Family>(given, [](const auto& spec) { return validate(spec); });
  });
}

template <class Family>
pagejit_status spec_supports(const typename Family::CSpec* given, const pagejit_target* target,
                             pagejit_error* error) noexcept {
  return call(error, [&] {
    return with_spec<Family>(given, [&](const auto& spec) -> Status {
      Target known;
      if (Status s = to_cpp(target, &known); !s) return s;
      return supports(spec, known);
    });
  });
}

template <class Family>
pagejit_status spec_canonical_text(const typename Family::CSpec* given, char* buffer,
                                   size_t buffer_size, size_t* length,
                                   pagejit_error* error) noexcept {
  return call(error, [&] {
    return with_spec<Family>(given, [&](const auto& spec) {
      return write_text(canonical_text(spec), buffer, buffer_size, length);
    });
  });
}

// A number that follows from a spec.
template <class Family, class Number, class Function>
pagejit_status spec_number(const typename Family::CSpec* given, const char* name, Number* out,
                           pagejit_error* error, Function&& function) noexcept {
  return call(error, [&] {
    return with_spec<Family>(given, [&](const auto& spec) -> Status {
      if (Status s = need(out, name); !s) return s;
      *out = function(spec);
      return {};
    });
  });
}

// ---- Making kernels ----

template <class Family>
pagejit_status prepare(pagejit_engine* engine, const typename Family::CSpec* given, int32_t device,
                       pagejit_stream stream, typename Family::CHandle** kernel,
                       pagejit_error* error) noexcept {
  return call(error, [&] {
    return with_engine(engine, [&](Engine& cpp_engine) {
      return with_spec<Family>(given, [&](const auto& spec) -> Status {
        if (Status s = need(kernel, "kernel"); !s) return s;
        Result<typename Family::Handle> made = cpp_engine.prepare(spec, device, stream);
        if (!made) return made.status();
        return hand_out(Family::kKind, std::move(*made), kernel);
      });
    });
  });
}

template <class Family>
pagejit_status prepare_async(pagejit_engine* engine, const typename Family::CSpec* given,
                             int32_t device, const pagejit_prepare_options* options,
                             pagejit_pending** pending, pagejit_error* error) noexcept {
  using Handle = typename Family::Handle;
  return call(error, [&] {
    return with_engine(engine, [&](Engine& cpp_engine) {
      return with_spec<Family>(given, [&](const auto& spec) -> Status {
        if (Status s = need(pending, "pending"); !s) return s;
        AsyncOptions async;
        if (Status s = to_cpp(options, &async); !s) return s;
        PrepareOptions<Handle> cpp_options;
        cpp_options.priority = async.priority;
        cpp_options.stream = async.stream;
        if (async.on_done != nullptr) {
          cpp_options.on_done = [done = DoneCall(async.on_done, async.user)](
                                    const Result<Handle>& result) { done(Family::kKind, result); };
        }
        // The handle first: what has begun is not taken back, and calls on_done.
        auto owned = std::make_unique<PendingOf<Handle>>(Family::kKind);
        PendingOf<Handle>& place = *owned;
        pagejit_pending* made = nullptr;
        if (Status s = hand_out(Kind::kPending, PendingHolder{std::move(owned)}, &made); !s) {
          return s;
        }
        Result<Pending<Handle>> started =
            guarded([&] { return cpp_engine.prepare_async(spec, device, std::move(cpp_options)); });
        if (!started) {
          (void)close(Kind::kPending, value_of(made));
          return started.status();
        }
        place.set(std::move(*started));
        *pending = made;
        return {};
      });
    });
  });
}

// kInvalidArgument: `pending` is that of another family.
Status wrong_family(Kind wanted, Kind found);

template <class Family>
pagejit_status wait(const pagejit_pending* pending, typename Family::CHandle** kernel,
                    pagejit_error* error) noexcept {
  return call(error, [&] {
    return with<PendingHolder>(Kind::kPending, pending, [&](PendingHolder& holder) -> Status {
      if (Status s = need(kernel, "kernel"); !s) return s;
      const PendingObject& any = *holder.pending;
      if (any.kernel_kind() != Family::kKind) return wrong_family(Family::kKind, any.kernel_kind());
      Result<typename Family::Handle> made =
          static_cast<const PendingOf<typename Family::Handle>&>(any).wait();
      if (!made) return made.status();
      return hand_out(Family::kKind, std::move(*made), kernel);
    });
  });
}

// `infos`: the pagejit_kernel_info of each part, which may be null.
template <class Family, class... Infos>
pagejit_status precompile(pagejit_engine* engine, const typename Family::CSpec* given,
                          const pagejit_target* target, pagejit_error* error,
                          Infos*... infos) noexcept {
  return call(error, [&] {
    return with_engine(engine, [&](Engine& cpp_engine) {
      return with_spec<Family>(given, [&](const auto& spec) -> Status {
        Target known;
        if (Status s = to_cpp(target, &known); !s) return s;
        if (Status s = check_infos(infos...); !s) return s;
        auto made = cpp_engine.precompile(spec, known);
        if (!made) return made.status();
        fill_infos(*made, infos...);
        return {};
      });
    });
  });
}

template <class Family>
pagejit_status render(const pagejit_engine* engine, const typename Family::CSpec* given,
                      const pagejit_target* target, char* buffer, size_t buffer_size,
                      size_t* length, pagejit_error* error) noexcept {
  return call(error, [&] {
    return with_engine(engine, [&](Engine& cpp_engine) {
      return with_spec<Family>(given, [&](const auto& spec) -> Status {
        Target known;
        if (Status s = to_cpp(target, &known); !s) return s;
        const Result<std::string> text = cpp_engine.render(spec, known);
        if (!text) return text.status();
        return write_text(*text, buffer, buffer_size, length);
      });
    });
  });
}

// ---- A kernel ----

template <class Family, class Function>
pagejit_status with_kernel(const typename Family::CHandle* kernel, pagejit_error* error,
                           Function&& function) noexcept {
  return call(error, [&] {
    return with<const typename Family::Handle>(Family::kKind, kernel,
                                               std::forward<Function>(function));
  });
}

template <class Family>
pagejit_status copy(const typename Family::CHandle* kernel, typename Family::CHandle** out,
                    pagejit_error* error) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = need(out, "copy"); !s) return s;
    return hand_out(Family::kKind, typename Family::Handle(handle), out);
  });
}

template <class Family, class... Infos>
pagejit_status get_info(const typename Family::CHandle* kernel, pagejit_error* error,
                        Infos*... infos) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) -> Status {
    if constexpr (sizeof...(infos) == 1) {
      if (Status s = need((infos, ...), "info"); !s) return s;
    }
    if (Status s = check_infos(infos...); !s) return s;
    fill_infos(handle.info(), infos...);
    return {};
  });
}

template <class Family>
pagejit_status get_spec(const typename Family::CHandle* kernel, typename Family::CSpec* out,
                        pagejit_error* error) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) -> Status {
    if (Status s = check_output(Family::kSpecName, out); !s) return s;
    fill(out, Family::to_c(handle.spec()));
    return {};
  });
}

template <class Family>
pagejit_status launch(const typename Family::CHandle* kernel, const typename Family::CArgs* given,
                      pagejit_stream stream, pagejit_error* error) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) -> Status {
    typename Family::Args args;
    if (Status s = Family::to_cpp(given, &args); !s) return s;
    if constexpr (requires { args.read_list(); }) {
      if (handle.spec().listed) args.read_list();
    }
    return handle.launch(args, stream);
  });
}

template <class Family>
pagejit_status workspace_init(const typename Family::CHandle* kernel, void* workspace,
                              size_t workspace_bytes, pagejit_stream stream,
                              pagejit_error* error) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) {
    return handle.workspace_init(workspace, workspace_bytes, stream);
  });
}

template <class Family>
pagejit_status init_debug_report(const typename Family::CHandle* kernel, void* report,
                                 pagejit_stream stream, pagejit_error* error) noexcept {
  return with_kernel<Family>(
      kernel, error, [&](const auto& handle) { return handle.init_debug_report(report, stream); });
}

// Of a report, or of a workspace that has one.
template <class Family>
pagejit_status read_debug_report(const typename Family::CHandle* kernel, void* place,
                                 pagejit_stream stream, pagejit_error* error) noexcept {
  return with_kernel<Family>(
      kernel, error, [&](const auto& handle) { return handle.read_debug_report(place, stream); });
}

// A number that follows from a launch's arguments. `function` gets the handle and the arguments.
template <class Family, class Number, class Function>
pagejit_status number_of(const typename Family::CHandle* kernel,
                         const typename Family::CArgs* given, const char* name, Number* out,
                         pagejit_error* error, Function&& function) noexcept {
  return with_kernel<Family>(kernel, error, [&](const auto& handle) -> Status {
    typename Family::Args args;
    if (Status s = Family::to_cpp(given, &args); !s) return s;
    if (Status s = need(out, name); !s) return s;
    *out = function(handle, args);
    return {};
  });
}

}  // namespace pagejit::c_api
