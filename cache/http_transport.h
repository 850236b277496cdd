// HttpTransport: how a RemoteStore reaches its server: one request, one answer. An interface only,
// so that the cache needs no HTTP library and its tests no server; runtime/optional/ has one over
// libcurl. Thread-safety: send() may be called from several threads at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagejit::cache {

enum class HttpMethod : uint8_t { kGet = 0, kHead = 1, kPut = 2 };

// Why there is no answer.
enum class HttpFailure : uint8_t {
  kNone = 0,
  kUnavailable = 1,  // this machine has no means to send anything: no library
  kConnect = 2,      // no address, no route, refused, no TLS
  kTimeout = 3,
  kIncomplete = 4,  // the connection ended before the answer did
  kTooLarge = 5,    // more bytes than were allowed; the transfer was broken off
  kRedirect = 6,    // too many, or to something other than http and https
  kCancelled = 7,
  kProtocol = 8,  // not HTTP, or any other failure
};
inline constexpr size_t kNumHttpFailures = 9;

// E.g. "timeout". Never null.
std::string_view http_failure_name(HttpFailure failure);

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string url{};        // may hold a name and a password, which no message may repeat
  std::string_view body{};  // of kPut; outlives the call
  bool if_none_match =
      false;  // kPut: "If-None-Match: *", only where there is nothing yet (RFC 9110)
  size_t max_body_bytes = 0;                     // of the answer to kGet
  std::chrono::milliseconds connect_timeout{0};  // name, connection and TLS
  std::chrono::milliseconds total_timeout{0};    // of everything, the former included
  const std::atomic<bool>* cancelled = nullptr;  // if not null: ends the call soon once it is true
};

struct HttpAnswer {
  HttpFailure failure = HttpFailure::kNone;
  std::string reason;  // of the failure, a sentence without credentials
  int status = 0;      // where there is no failure: that of the last answer, after redirects
  std::string body;    // of kGet with status 200
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // Returns within total_timeout, whatever the server does. kGet and kHead follow at most
  // kMaxRedirects, kPut none (its answer has the status 3xx then). Does not throw.
  virtual HttpAnswer send(const HttpRequest& request) = 0;
};

// A store behind a load balancer answers with one or two.
inline constexpr int kMaxRedirects = 3;

}  // namespace pagejit::cache
