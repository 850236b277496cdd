// The engine, and what it prepares in the background.
#include "runtime/c_api/family.h"
#include "runtime/c_api/options.h"
#include "runtime/format.h"

namespace pagejit::c_api {

Status to_cpp(const pagejit_prepare_options* from, AsyncOptions* to) {
  if (from == nullptr) return {};
  pagejit_prepare_options copy;
  Status refusal;
  const pagejit_prepare_options* known =
      open_struct("pagejit_prepare_options", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_prepare_options");
  to->priority = fields.enumerator("priority", known->priority, JobPriority::kUrgent);
  to->stream = known->stream;
  to->on_done = known->on_done;
  to->user = known->done_user;
  fields.reserved(known->reserved);
  return fields.status();
}

void DoneCall::tell_failure(const Status& status) const {
  pagejit_error* error = nullptr;  // stays null where there is no room for it
  if (guarded([&] { return hand_out(Kind::kError, ErrorObject{}, &error); })) {
    (void)fail(error, status);
  }
  on_done_(user_, static_cast<pagejit_status>(status.code()), nullptr, error);
  if (error != nullptr) (void)close(Kind::kError, value_of(error));
}

Status wrong_family(Kind wanted, Kind found) {
  return Status(StatusCode::kInvalidArgument,
                format("pagejit_pending: it is to become a {}, not a {}", kind_name(found),
                       kind_name(wanted)));
}

}  // namespace pagejit::c_api

using pagejit::Engine;
using pagejit::Result;
using pagejit::Status;
using pagejit::c_api::call;
using pagejit::c_api::Kind;
using pagejit::c_api::need;
using pagejit::c_api::PendingHolder;
using pagejit::c_api::with;
using pagejit::c_api::with_engine;

pagejit_status pagejit_engine_create(const pagejit_engine_options* options, pagejit_engine** engine,
                                     pagejit_error* error) {
  return call(error, [&]() -> Status {
    if (Status s = need(engine, "engine"); !s) return s;
    pagejit::EngineOptions known;
    if (options != nullptr) {
      if (Status s = pagejit::c_api::to_cpp(options, &known); !s) return s;
    }
    Result<std::shared_ptr<Engine>> made = Engine::create(std::move(known));
    if (!made) return made.status();
    return pagejit::c_api::hand_out(Kind::kEngine, pagejit::c_api::EngineObject{std::move(*made)},
                                    engine);
  });
}

pagejit_status pagejit_engine_destroy(pagejit_engine* engine, pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kEngine, engine, error);
}

pagejit_status pagejit_engine_target_of_device(pagejit_engine* engine, int32_t device,
                                               pagejit_target* target, pagejit_error* error) {
  return call(error, [&] {
    return with_engine(engine, [&](Engine& cpp_engine) -> Status {
      if (Status s = pagejit::c_api::check_output("pagejit_target", target); !s) return s;
      const Result<pagejit::Target> found = cpp_engine.target_of_device(device);
      if (!found) return found.status();
      pagejit::c_api::fill(target, pagejit::c_api::to_c(*found));
      return {};
    });
  });
}

pagejit_status pagejit_prepare_options_init(pagejit_prepare_options* options, size_t struct_size) {
  pagejit_prepare_options defaults = {};
  defaults.priority = PAGEJIT_PRIORITY_NORMAL;
  return pagejit::c_api::init_struct(options, struct_size, defaults);
}

pagejit_status pagejit_pending_wait_for(const pagejit_pending* pending, int64_t timeout_ms,
                                        int32_t* ready, pagejit_error* error) {
  return call(error, [&] {
    return with<PendingHolder>(Kind::kPending, pending, [&](PendingHolder& holder) -> Status {
      if (Status s = need(ready, "ready"); !s) return s;
      // A year: more would overflow the clock that is waited for.
      constexpr int64_t kLongestMs = int64_t{365} * 24 * 3600 * 1000;
      const int64_t timeout = std::clamp<int64_t>(timeout_ms, 0, kLongestMs);
      *ready = holder.pending->wait_for(std::chrono::milliseconds(timeout)) ? 1 : 0;
      return {};
    });
  });
}

pagejit_status pagejit_pending_is_ready(const pagejit_pending* pending, int32_t* ready,
                                        pagejit_error* error) {
  return pagejit_pending_wait_for(pending, 0, ready, error);
}

pagejit_status pagejit_pending_cancel(pagejit_pending* pending, pagejit_error* error) {
  return call(error, [&] {
    return with<PendingHolder>(Kind::kPending, pending, [&](PendingHolder& holder) {
      holder.pending->cancel();
      return Status();
    });
  });
}

pagejit_status pagejit_pending_destroy(pagejit_pending* pending, pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kPending, pending, error);
}
