#include "tests/runtime/remote/nginx_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "tests/runtime/remote/loopback.h"

namespace pagejit {
namespace {

constexpr int kBacklog = 128;

std::string configuration(const std::string& folder, int port, const NginxOptions& options) {
  // A master and a worker: nginx 1.22 without a master does not survive the socket that it is
  // given.
  std::string text = std::string(::geteuid() == 0 ? "user root;\n" : "") +
                     "daemon off;\nworker_processes 1;\npid " + folder +
                     "/nginx.pid;\nevents { worker_connections 64; }\nhttp {\n"
                     "  log_format brief '$connection $request_method $status';\n"
                     "  access_log " +
                     folder + "/access.log brief;\n";
  for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    text += std::string("  ") + kind + "_temp_path " + folder + "/" + kind + ";\n";
  }
  return text + "  server {\n    listen 127.0.0.1:" + std::to_string(port) + options.listen_suffix +
         ";\n    root " + folder + "/root;\n    " + options.in_server +
         "\n    location / {\n      dav_methods PUT;\n      create_full_put_path on;\n      " +
         options.in_location + "\n    }\n  }\n}\n";
}

// In the child: only async-signal-safe calls.
[[noreturn]] void become_nginx(char* const* arguments, char* const* environment, int listener,
                               pid_t parent, size_t max_file_bytes) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // upon which it ends its worker too
  if (::getppid() != parent) ::_exit(1);
  ::fcntl(listener, F_SETFD, 0);
  if (max_file_bytes != 0) {
    const rlimit limit{max_file_bytes, max_file_bytes};
    ::signal(SIGXFSZ, SIG_IGN);  // writes fail instead (EFBIG)
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ::execve(arguments[0], arguments, environment);
  ::_exit(1);
}

}  // namespace

NginxServer::NginxServer(NginxOptions options) : options_(std::move(options)) {
  std::filesystem::create_directory(root());
  start();
}

NginxServer::~NginxServer() { kill(); }

void NginxServer::start() {
  kill();
  // nginx takes the socket over, as it does in an upgrade of itself (its variable NGINX): nobody
  // else can get the port, and what connects before nginx runs waits for it.
  const int listener = listen_on_loopback(port_, kBacklog);
  port_ = port_of(listener);
  const std::string folder = directory_.path();
  cache::write_file(directory_.path() / "nginx.conf", configuration(folder, port_, options_));

  std::string texts[] = {program(), "-e",  folder + "/error.log", "-c", folder + "/nginx.conf",
                         "-p",      folder};
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::string inherited = "NGINX=" + std::to_string(listener) + ";";
  char* const environment[] = {inherited.data(), nullptr};

  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that kill() can wait for the worker
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    become_nginx(arguments.data(), environment, listener, parent, options_.max_file_bytes);
  }
  EXPECT_GT(pid_, 0);
  ::setpgid(pid_, pid_);  // in both processes: whichever is first
  ::close(listener);
}

void NginxServer::kill() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(-pid_, nullptr, 0) > 0) {
  }
  pid_ = -1;
}

}  // namespace pagejit
