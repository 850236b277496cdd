#include "tests/runtime/remote/raw_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tests/runtime/remote/loopback.h"

namespace pagejit {
namespace {

constexpr size_t kChunkBytes = 64 << 10;

}  // namespace

RawConnection::~RawConnection() = default;  // the server closes it

std::string RawConnection::read_request() {
  std::array<char, kChunkBytes> chunk;
  size_t end;
  while ((end = rest_.find("\r\n\r\n")) == std::string::npos) {
    const ssize_t got = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (got <= 0) return "";
    rest_.append(chunk.data(), static_cast<size_t>(got));
  }
  const std::string request = rest_.substr(0, end + 4);
  rest_.erase(0, end + 4);
  return request;
}

bool RawConnection::skip(size_t num_bytes) {
  std::array<char, kChunkBytes> chunk;
  while (rest_.size() < num_bytes) {
    num_bytes -= rest_.size();
    rest_.clear();
    const ssize_t got = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (got <= 0) return false;
    rest_.append(chunk.data(), static_cast<size_t>(got));
  }
  rest_.erase(0, num_bytes);
  return true;
}

bool RawConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void RawConnection::wait_for_close() {
  char byte;
  while (::recv(fd_, &byte, 1, 0) > 0) {
  }
}

void RawConnection::wait_for_close_unread() {
  pollfd connection{fd_, POLLRDHUP, 0};
  ::poll(&connection, 1, -1);
}

RawServer::RawServer(Handler handler)
    : handler_(std::move(handler)),
      listener_(listen_on_loopback(0, SOMAXCONN)),
      port_(port_of(listener_)),
      accepting_([this] { accept_connections(); }) {}

RawServer::~RawServer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);  // ends accept()
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void RawServer::accept_connections() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    if (is_stopping_) {
      ::close(fd);
      return;
    }
    ++num_connections_;
    open_.push_back(fd);
    threads_.emplace_back([this, fd] {
      RawConnection connection(fd);
      handler_(connection);
      const std::lock_guard inner_lock(mutex_);
      std::erase(open_, fd);
      ::close(fd);
    });
  }
}

std::string http_answer(std::string_view body, std::string_view status) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

}  // namespace pagejit
