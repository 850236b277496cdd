// Error objects.
#include "runtime/c_api/call.h"
#include "runtime/format.h"

namespace pagejit::c_api {
namespace {

// `choose` gives one of a failure's texts. They live in the error object.
template <class Choose>
const char* text_of(const pagejit_error* error, Choose choose) noexcept {
  const Pin pin(Kind::kError, error);
  if (pin.object() == nullptr) return "";
  if (slot_of(value_of(error))->is_set.load(std::memory_order_relaxed) == 0) return "";
  return choose(static_cast<const ErrorObject*>(pin.object())->status).c_str();
}

}  // namespace

pagejit_status fail(pagejit_error* error, Status status) noexcept {
  const StatusCode code = status.code();
  const Pin pin(Kind::kError, error);
  if (pin.object() != nullptr) {
    static_cast<ErrorObject*>(pin.object())->status = std::move(status);
    slot_of(value_of(error))->is_set.store(1, std::memory_order_relaxed);
  }
  return static_cast<pagejit_status>(code);
}

Status null_argument(const char* name) {
  return Status(StatusCode::kInvalidArgument, format("{}: null", name));
}

}  // namespace pagejit::c_api

using pagejit::Status;
using pagejit::c_api::ErrorObject;
using pagejit::c_api::Kind;
using pagejit::c_api::Pin;
using pagejit::c_api::text_of;
using pagejit::c_api::value_of;

pagejit_status pagejit_error_create(pagejit_error** error) {
  return pagejit::c_api::call(nullptr, [&]() -> Status {
    if (Status s = pagejit::c_api::need(error, "error"); !s) return s;
    return pagejit::c_api::hand_out(Kind::kError, ErrorObject{}, error);
  });
}

pagejit_status pagejit_error_destroy(pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kError, error, nullptr);
}

pagejit_status pagejit_error_code(const pagejit_error* error) {
  const Pin pin(Kind::kError, error);
  if (pin.object() == nullptr) return PAGEJIT_INVALID_ARGUMENT;
  const bool is_set =
      pagejit::c_api::slot_of(value_of(error))->is_set.load(std::memory_order_relaxed) != 0;
  return is_set
             ? static_cast<pagejit_status>(static_cast<ErrorObject*>(pin.object())->status.code())
             : PAGEJIT_OK;
}

const char* pagejit_error_message(const pagejit_error* error) {
  if (error == nullptr) return "pagejit_error: null";
  if (Pin(Kind::kError, error).object() == nullptr) {
    return "pagejit_error: this is no error object, or it was destroyed";
  }
  return text_of(error, [](const Status& s) -> const std::string& { return s.message(); });
}

const char* pagejit_error_detail(const pagejit_error* error) {
  return text_of(error, [](const Status& s) -> const std::string& { return s.detail(); });
}

const char* pagejit_error_spec(const pagejit_error* error) {
  return text_of(error, [](const Status& s) -> const std::string& { return s.facts().spec; });
}

const char* pagejit_error_log(const pagejit_error* error) {
  return text_of(error, [](const Status& s) -> const std::string& { return s.facts().log; });
}

const char* pagejit_error_options(const pagejit_error* error) {
  return text_of(error, [](const Status& s) -> const std::string& { return s.facts().options; });
}

const char* pagejit_error_source(const pagejit_error* error) {
  return text_of(error, [](const Status& s) -> const std::string& { return s.facts().source; });
}

int32_t pagejit_error_cuda_result(const pagejit_error* error) {
  const Pin pin(Kind::kError, error);
  if (pin.object() == nullptr || pagejit_error_code(error) == PAGEJIT_OK) return 0;
  return static_cast<ErrorObject*>(pin.object())->status.facts().cuda_result;
}
