// CurlTransport: HTTP over libcurl, which is opened with the first request; without one every
// answer is kUnavailable. Connections are kept and used again. Not a general client: no cookies, no
// .netrc, no HTTP/2, and no proxy, whatever http_proxy says, because an engine reads no environment
// variable but its own. A name and a password in the URL are sent as Basic authentication, and not
// to another host that a redirect leads to; a redirect from https leads only to https.
// Thread-safety: send() may be called from several threads at once, and in forked children.
//
// Its time limits hold for everything but the resolution of names with a libcurl before 7.87, which
// waits for the system's resolver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/http_transport.h"
#include "cache/per_process.h"
#include "runtime/optional/curl_library.h"

namespace pagejit {

class CurlTransport : public cache::HttpTransport {
 public:
  explicit CurlTransport(std::vector<std::string> libraries = CurlLibrary::default_files());
  ~CurlTransport() override;

  cache::HttpAnswer send(const cache::HttpRequest& request) override;

 private:
  class Handles;  // of one process

  cache::PerProcess<Handles> handles_;
};

}  // namespace pagejit
