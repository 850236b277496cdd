// RawServer: a socket on loopback that answers whatever a test says, HTTP or not. Not a server:
// nginx_server.h has a real one. Thread-safety: the handler runs on the server's threads, one per
// connection; the other functions belong to one thread.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pagejit {

// One connection, seen from the server.
class RawConnection {
 public:
  explicit RawConnection(int fd) : fd_(fd) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Everything up to the empty line that ends a request's header; "" where the client has closed.
  std::string read_request();
  // Reads this many bytes and forgets them; false where the client has closed.
  bool skip(size_t num_bytes);
  // False where the client has closed.
  bool write(std::string_view bytes);
  // Returns when the client has closed the connection, or the server stops.
  void wait_for_close();
  // The same without reading what the client sends.
  void wait_for_close_unread();

 private:
  const int fd_;
  std::string rest_;  // read, and behind the last request
};

class RawServer {
 public:
  using Handler = std::function<void(RawConnection&)>;

  // The handler is called for each connection, which is closed when it returns.
  explicit RawServer(Handler handler);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int num_connections() const { return num_connections_; }

 private:
  void accept_connections();

  const Handler handler_;
  int listener_;
  int port_;
  std::atomic<int> num_connections_{0};
  std::mutex mutex_;  // guards what follows
  bool is_stopping_ = false;
  std::vector<int> open_;  // connections
  std::vector<std::thread> threads_;
  std::thread accepting_;  // the last to be made
};

// A whole answer with this body and a right Content-Length.
std::string http_answer(std::string_view body, std::string_view status = "200 OK");

}  // namespace pagejit
