// CurlLibrary: libcurl as a table of typed functions, opened at run time: it is optional, and never
// linked. Only what curl_transport needs; no libcurl header is included. libcurl promises that
// these numbers and signatures do not change (curl/curl.h, soname 4 since 2006). Thread-safety:
// open() may be called from several threads at once; the functions are libcurl's own, which take a
// handle from one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pagejit/status.h"

namespace pagejit {

struct CURL;  // an easy handle, opaque here
struct curl_slist;

// Options and their values: enum CURLoption. Below 10000: long; below 20000: pointer; below 30000:
// function; else curl_off_t, 64 bits.
namespace curl_option {
inline constexpr int kNoProgress = 43;
inline constexpr int kNoBody = 44;
inline constexpr int kFollowLocation = 52;
inline constexpr int kMaxRedirs = 68;
inline constexpr int kHttpVersion = 84;
inline constexpr int kNoSignal = 99;
inline constexpr int kTimeoutMs = 155;
inline constexpr int kConnectTimeoutMs = 156;
inline constexpr int kProtocols = 181;
inline constexpr int kRedirProtocols = 182;
inline constexpr int kHappyEyeballsTimeoutMs = 271;  // since 7.59
inline constexpr int kHttp09Allowed = 285;           // since 7.64
inline constexpr int kQuickExit = 322;               // since 7.87
inline constexpr int kWriteData = 10001;
inline constexpr int kUrl = 10002;
inline constexpr int kProxy = 10004;
inline constexpr int kErrorBuffer = 10010;
inline constexpr int kPostFields = 10015;
inline constexpr int kUserAgent = 10018;
inline constexpr int kHttpHeader = 10023;
inline constexpr int kHeaderData = 10029;
inline constexpr int kCustomRequest = 10036;
inline constexpr int kXferInfoData = 10057;
inline constexpr int kWriteFunction = 20011;
inline constexpr int kHeaderFunction = 20079;
inline constexpr int kXferInfoFunction = 20219;
inline constexpr int kMaxFileSizeLarge = 30117;
inline constexpr int kPostFieldSizeLarge = 30120;
}  // namespace curl_option

inline constexpr int kCurlHttpVersion11 = 2;            // CURL_HTTP_VERSION_1_1
inline constexpr long kCurlProtocolHttp = 1;            // NOLINT: CURLPROTO_HTTP, a long in the ABI
inline constexpr long kCurlProtocolHttps = 2;           // NOLINT: CURLPROTO_HTTPS
inline constexpr long kCurlGlobalDefault = 3;           // NOLINT: CURL_GLOBAL_DEFAULT
inline constexpr int kCurlInfoResponseCode = 0x200002;  // CURLINFO_RESPONSE_CODE, a long
inline constexpr int kCurlInfoRedirectCount = 0x200014;  // CURLINFO_REDIRECT_COUNT, a long
inline constexpr size_t kCurlErrorBytes = 256;           // CURL_ERROR_SIZE

// enum CURLcode.
namespace curl_code {
inline constexpr int kOk = 0;
inline constexpr int kUnsupportedProtocol = 1;
inline constexpr int kCouldNotResolveHost = 6;
inline constexpr int kCouldNotConnect = 7;
inline constexpr int kPartialFile = 18;
inline constexpr int kOperationTimedOut = 28;
inline constexpr int kSslConnectError = 35;
inline constexpr int kAbortedByCallback = 42;
inline constexpr int kTooManyRedirects = 47;
inline constexpr int kGotNothing = 52;
inline constexpr int kSendError = 55;
inline constexpr int kRecvError = 56;
inline constexpr int kPeerFailedVerification = 60;
inline constexpr int kFileSizeExceeded = 63;
inline constexpr int kSslCaCertBadFile = 77;
}  // namespace curl_code

struct CurlLibrary {
  CURL* (*easy_init)() = nullptr;
  void (*easy_reset)(CURL*) = nullptr;
  void (*easy_cleanup)(CURL*) = nullptr;
  int (*easy_setopt)(CURL*, int option, ...) = nullptr;
  int (*easy_getinfo)(CURL*, int info, ...) = nullptr;
  int (*easy_perform)(CURL*) = nullptr;
  const char* (*easy_strerror)(int code) = nullptr;
  curl_slist* (*slist_append)(curl_slist*, const char*) = nullptr;
  void (*slist_free_all)(curl_slist*) = nullptr;

  // The first of `files` (names for dlopen) that is there and has all functions. It stays open for
  // good. kNotFound says what was tried.
  static Result<CurlLibrary> open(const std::vector<std::string>& files);
  // libcurl.so.4, then libcurl-gnutls.so.4, which Debian has for programs under the GPL.
  static std::vector<std::string> default_files();
};

}  // namespace pagejit
