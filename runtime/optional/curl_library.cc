#include "runtime/optional/curl_library.h"

#include <dlfcn.h>

#include <chrono>
#include <mutex>

#include "runtime/format.h"
#include "runtime/loader_error.h"

namespace pagejit {
namespace {

template <class Function>
void find(void* library, const char* name, Function* function, const char** missing) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  if (*function == nullptr) *missing = name;
}

// curl_global_init takes no lock of its own before 7.84.
Status init(void* library) {
  static std::timed_mutex mutex;
  // A child that was forked while another thread was in here would wait for ever.
  const std::unique_lock lock(mutex, std::chrono::seconds(1));
  if (!lock.owns_lock()) return {StatusCode::kNotFound, "libcurl is being initialised elsewhere"};
  int (*global_init)(long) = nullptr;  // NOLINT(google-runtime-int): libcurl's own type
  const char* missing = nullptr;
  find(library, "curl_global_init", &global_init, &missing);
  if (missing != nullptr) return {StatusCode::kNotFound, "it has no curl_global_init"};
  const int code = global_init(kCurlGlobalDefault);
  if (code == curl_code::kOk) return {};
  return {StatusCode::kNotFound, format("curl_global_init failed with code {}", code)};
}

Result<CurlLibrary> open_one(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(StatusCode::kNotFound, loader_error());
  }
  CurlLibrary curl;
  const char* missing = nullptr;
  find(library, "curl_easy_init", &curl.easy_init, &missing);
  find(library, "curl_easy_reset", &curl.easy_reset, &missing);
  find(library, "curl_easy_cleanup", &curl.easy_cleanup, &missing);
  find(library, "curl_easy_setopt", &curl.easy_setopt, &missing);
  find(library, "curl_easy_getinfo", &curl.easy_getinfo, &missing);
  find(library, "curl_easy_perform", &curl.easy_perform, &missing);
  find(library, "curl_easy_strerror", &curl.easy_strerror, &missing);
  find(library, "curl_slist_append", &curl.slist_append, &missing);
  find(library, "curl_slist_free_all", &curl.slist_free_all, &missing);
  if (missing != nullptr) {
    return Status(StatusCode::kNotFound, format("{} has no {}", file, missing));
  }
  if (Status status = init(library); !status) return status.with_context(file);
  return curl;
}

}  // namespace

std::vector<std::string> CurlLibrary::default_files() {
  return {"libcurl.so.4", "libcurl-gnutls.so.4"};
}

Result<CurlLibrary> CurlLibrary::open(const std::vector<std::string>& files) {
  std::string tried;
  for (const std::string& file : files) {
    Result<CurlLibrary> library = open_one(file);
    if (library) return library;
    tried += (tried.empty() ? "" : "; ") + library.status().message();
  }
  return Status(StatusCode::kNotFound, "libcurl was not found: " + tried);
}

}  // namespace pagejit
