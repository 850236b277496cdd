#include "runtime/optional/curl_transport.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace pagejit {
namespace {

using cache::HttpAnswer;
using cache::HttpFailure;
using cache::HttpMethod;
using cache::HttpRequest;

// Of the answer's lines before its body, redirects included: ten times what servers send.
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
// Of a body that nobody wants (an error page); beyond this the connection is not worth keeping.
constexpr size_t kMaxIgnoredBytes = size_t{64} << 10;
// Requests at one time come from compiling threads and the one that uploads.
constexpr size_t kMaxIdleHandles = 8;
// IPv4 is tried this long after IPv6. libcurl's own 200 ms would use up the limit for connecting.
constexpr int kHappyEyeballsMs = 50;
constexpr int kOkStatus = 200;
constexpr int kFirstErrorStatus = 400;

// TLS writes to a socket without MSG_NOSIGNAL, and under CURLOPT_NOSIGNAL libcurl leaves SIGPIPE to
// its caller: a server that closes must not end the program.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeBlocked() {
    if (!was_pending_) {
      const timespec no_wait{};
      ::sigtimedwait(&sigpipe_, nullptr, &no_wait);  // takes the one that we caused
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t sigpipe_;
  sigset_t before_;
  bool was_pending_;
};

// One request on one handle.
class Transfer {
 public:
  Transfer(const CurlLibrary& curl, CURL* handle, const HttpRequest& request)
      : curl_(curl), handle_(handle), request_(request) {}
  ~Transfer() {
    curl_.easy_reset(handle_);  // forgets everything about this transfer, but not connections
    curl_.slist_free_all(headers_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  HttpAnswer perform() {
    if (!set_options()) return failure(HttpFailure::kProtocol, "libcurl refuses an option");
    const int code = curl_.easy_perform(handle_);
    const auto status = static_cast<int>(number(kCurlInfoResponseCode));
    // A body that is not wanted was broken off, or the server did not read ours to its end: its
    // answer is there all the same.
    const bool is_answer =
        code == curl_code::kOk ||
        ((stopped_by_ == StoppedBy::kBody || code == curl_code::kFileSizeExceeded) &&
         !is_wanted(status)) ||
        ((code == curl_code::kSendError || code == curl_code::kRecvError) &&
         request_.method == HttpMethod::kPut && status >= kFirstErrorStatus);
    if (!is_answer) return failure(failure_of(code), reason_of(code));
    HttpAnswer answer;
    answer.status = status;
    answer.body = std::move(body_);
    return answer;
  }

 private:
  enum class StoppedBy : uint8_t { kNothing, kHeader, kBody, kMemory };

  bool set_options() {
    // NOLINTBEGIN(google-runtime-int): the types of libcurl's variadic function
    namespace option = curl_option;
    bool ok = true;
    const auto set = [&](int which, auto value) {
      ok = curl_.easy_setopt(handle_, which, value) == curl_code::kOk && ok;
    };
    const auto add_header = [&](const char* line) {
      curl_slist* const longer = curl_.slist_append(headers_, line);
      ok = longer != nullptr && ok;
      if (longer != nullptr) headers_ = longer;
    };
    const bool is_https = request_.url.starts_with("https:");
    const long protocols = is_https ? kCurlProtocolHttps : kCurlProtocolHttp | kCurlProtocolHttps;
    set(option::kNoSignal, 1L);
    set(option::kErrorBuffer, error_.data());
    set(option::kUrl, request_.url.c_str());
    set(option::kProtocols, protocols);
    set(option::kRedirProtocols, protocols);
    set(option::kProxy, "");
    set(option::kUserAgent, "pagejit");
    set(option::kHttpVersion, long{kCurlHttpVersion11});
    set(option::kTimeoutMs, static_cast<long>(request_.total_timeout.count()));
    set(option::kConnectTimeoutMs, static_cast<long>(request_.connect_timeout.count()));
    set(option::kWriteFunction, &Transfer::take_body);
    set(option::kWriteData, this);
    set(option::kHeaderFunction, &Transfer::take_header);
    set(option::kHeaderData, this);
    set(option::kNoProgress, 0L);
    set(option::kXferInfoFunction, &Transfer::is_cancelled);
    set(option::kXferInfoData, this);
    set(option::kFollowLocation, request_.method == HttpMethod::kPut ? 0L : 1L);
    set(option::kMaxRedirs, long{cache::kMaxRedirects});
    if (request_.method == HttpMethod::kGet) {
      set(option::kMaxFileSizeLarge, static_cast<int64_t>(request_.max_body_bytes));
    } else if (request_.method == HttpMethod::kHead) {
      set(option::kNoBody, 1L);
    } else {
      // As a POST of another name, for which libcurl reads from memory, again if need be.
      set(option::kPostFieldSizeLarge, static_cast<int64_t>(request_.body.size()));
      set(option::kPostFields, request_.body.data());
      set(option::kCustomRequest, "PUT");
      add_header("Content-Type: application/octet-stream");
      add_header("Expect:");  // none: no waiting for "100 Continue"
      if (request_.if_none_match) add_header("If-None-Match: *");
      set(option::kHttpHeader, headers_);
    }
    const bool all_set = ok;
    // An older libcurl does not know these; without them it does nearly the same.
    set(option::kHappyEyeballsTimeoutMs, long{kHappyEyeballsMs});
    set(option::kHttp09Allowed, 0L);
    set(option::kQuickExit, 1L);
    return all_set;
    // NOLINTEND(google-runtime-int)
  }

  static size_t take_body(const char* data, size_t, size_t count, void* self) {
    return static_cast<Transfer*>(self)->on_body({data, count});
  }
  static size_t take_header(const char*, size_t, size_t count, void* self) {
    auto* const transfer = static_cast<Transfer*>(self);
    transfer->header_bytes_ += count;
    if (transfer->header_bytes_ <= kMaxHeaderBytes) return count;
    transfer->stopped_by_ = StoppedBy::kHeader;
    return 0;
  }
  static int is_cancelled(void* self, int64_t, int64_t, int64_t, int64_t) {
    const std::atomic<bool>* const cancelled = static_cast<Transfer*>(self)->request_.cancelled;
    return cancelled != nullptr && cancelled->load() ? 1 : 0;
  }

  bool is_wanted(int status) const {
    return request_.method == HttpMethod::kGet && status == kOkStatus;
  }

  size_t on_body(std::string_view bytes) {
    const bool wanted = is_wanted(static_cast<int>(number(kCurlInfoResponseCode)));
    body_bytes_ += bytes.size();
    if (body_bytes_ > (wanted ? request_.max_body_bytes : kMaxIgnoredBytes)) {
      stopped_by_ = StoppedBy::kBody;
      return 0;
    }
    try {
      if (wanted) body_ += bytes;
    } catch (const std::exception&) {
      stopped_by_ = StoppedBy::kMemory;
      return 0;
    }
    return bytes.size();
  }

  long number(int info) const {  // NOLINT(google-runtime-int): libcurl's own type
    long value = 0;              // NOLINT(google-runtime-int)
    curl_.easy_getinfo(handle_, info, &value);
    return value;
  }

  HttpFailure failure_of(int code) const {
    if (stopped_by_ == StoppedBy::kBody) return HttpFailure::kTooLarge;
    switch (code) {
      case curl_code::kCouldNotResolveHost:
      case curl_code::kCouldNotConnect:
      case curl_code::kSslConnectError:
      case curl_code::kPeerFailedVerification:
      case curl_code::kSslCaCertBadFile:
        return HttpFailure::kConnect;
      case curl_code::kOperationTimedOut:
        return HttpFailure::kTimeout;
      case curl_code::kPartialFile:
      case curl_code::kGotNothing:
      case curl_code::kSendError:
      case curl_code::kRecvError:
        return HttpFailure::kIncomplete;
      case curl_code::kFileSizeExceeded:
        return HttpFailure::kTooLarge;
      case curl_code::kTooManyRedirects:
        return HttpFailure::kRedirect;
      case curl_code::kAbortedByCallback:
        return HttpFailure::kCancelled;
      case curl_code::kUnsupportedProtocol:
        return number(kCurlInfoRedirectCount) > 0 ? HttpFailure::kRedirect : HttpFailure::kProtocol;
      default:
        return HttpFailure::kProtocol;
    }
  }

  std::string reason_of(int code) const {
    if (stopped_by_ == StoppedBy::kHeader) {
      return "the answer's header has more than " + std::to_string(kMaxHeaderBytes) + " bytes";
    }
    if (stopped_by_ == StoppedBy::kMemory) return "out of memory";
    // libcurl's own sentence names hosts and ports, and might one day name the whole URL.
    const std::string_view details(error_.data());
    if (details.empty() || details.find('@') != std::string_view::npos) {
      return curl_.easy_strerror(code);
    }
    return std::string(details);
  }

  static HttpAnswer failure(HttpFailure failure, std::string reason) {
    HttpAnswer answer;
    answer.failure = failure;
    answer.reason = std::move(reason);
    return answer;
  }

  const CurlLibrary& curl_;
  CURL* const handle_;
  const HttpRequest& request_;
  curl_slist* headers_ = nullptr;
  std::array<char, kCurlErrorBytes> error_{};
  std::string body_;
  size_t body_bytes_ = 0;
  size_t header_bytes_ = 0;
  StoppedBy stopped_by_ = StoppedBy::kNothing;
};

}  // namespace

// Handles that no request uses just now, each with the connections that it keeps.
class CurlTransport::Handles {
 public:
  explicit Handles(std::vector<std::string> libraries) : libraries_(std::move(libraries)) {}
  ~Handles() {
    const SigpipeBlocked sigpipe_blocked;
    for (CURL* handle : idle_) (*curl_)->easy_cleanup(handle);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  HttpAnswer send(const HttpRequest& request) {
    const Result<CurlLibrary>& curl = library();
    CURL* const handle = curl ? take(*curl) : nullptr;
    if (handle == nullptr) {
      HttpAnswer answer;
      answer.failure = HttpFailure::kUnavailable;
      answer.reason = curl ? "libcurl makes no handle" : curl.status().message();
      return answer;
    }
    const SigpipeBlocked sigpipe_blocked;
    HttpAnswer answer = Transfer(*curl, handle, request).perform();
    give_back(*curl, handle);
    return answer;
  }

 private:
  const Result<CurlLibrary>& library() {
    const std::lock_guard lock(mutex_);
    if (!curl_) curl_.emplace(CurlLibrary::open(libraries_));
    return *curl_;  // written once
  }

  CURL* take(const CurlLibrary& curl) {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        CURL* const handle = idle_.back();
        idle_.pop_back();
        return handle;
      }
    }
    return curl.easy_init();
  }

  void give_back(const CurlLibrary& curl, CURL* handle) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_.size() < kMaxIdleHandles) {
        idle_.push_back(handle);
        return;
      }
    }
    curl.easy_cleanup(handle);
  }

  const std::vector<std::string> libraries_;
  std::mutex mutex_;  // guards what follows
  std::optional<Result<CurlLibrary>> curl_;
  std::vector<CURL*> idle_;
};

CurlTransport::CurlTransport(std::vector<std::string> libraries)
    : handles_(
          [libraries = std::move(libraries)] { return std::make_unique<Handles>(libraries); }) {}

CurlTransport::~CurlTransport() = default;

cache::HttpAnswer CurlTransport::send(const cache::HttpRequest& request) {
  return handles_.get().send(request);
}

}  // namespace pagejit
