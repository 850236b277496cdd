#include "runtime/guard.h"

#include <exception>
#include <new>
#include <string>

namespace pagejit {
namespace {

Status described_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory();
  } catch (const std::exception& error) {
    return Status(StatusCode::kInternal, std::string("unexpected exception: ") + error.what());
  } catch (...) {
    return Status(StatusCode::kInternal, "unexpected exception of an unknown type");
  }
}

}  // namespace

Status status_of_exception() noexcept {
  try {
    return described_exception();
  } catch (...) {  // there is no memory for a description
    return Status::out_of_memory();
  }
}

}  // namespace pagejit
