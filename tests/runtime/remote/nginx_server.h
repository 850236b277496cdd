// NginxServer: a real nginx that stores what is PUT, on loopback, with a folder of its own. It dies
// with the test's process. Thread-safety: one thread, the one that made it (a parent's death is
// signalled when that thread ends).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "tests/cache/cache_test_util.h"

namespace pagejit {

struct NginxOptions {
  std::string in_location{};    // directives for every path
  std::string in_server{};      // further locations
  std::string listen_suffix{};  // e.g. " ssl"
  size_t max_file_bytes =
      0;  // what it writes in one file; beyond it a disk is "full". 0 = no limit
};

class NginxServer {
 public:
  // "" where this machine has no nginx.
  static std::string program() { return PAGEJIT_NGINX; }

  explicit NginxServer(NginxOptions options = {});
  ~NginxServer();
  NginxServer(const NginxServer&) = delete;
  NginxServer& operator=(const NginxServer&) = delete;

  // Takes connections from the moment that this returns.
  void start();
  void kill();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  std::filesystem::path folder() const { return directory_.path(); }
  // Where a URL's path lies.
  std::filesystem::path root() const { return folder() / "root"; }
  // A line per request: "<connection's number> <method> <status>".
  std::string access_log() const { return cache::read_file(folder() / "access.log"); }
  std::string error_log() const { return cache::read_file(folder() / "error.log"); }

 private:
  const NginxOptions options_;
  const cache::TestDirectory directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace pagejit
