#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/runtime/remote/loopback.h"
#include "tests/runtime/remote/raw_server.h"
#include "tests/runtime/remote/remote_fixture.h"

// Stands before the system's: libcurl finds this one. A name server that does not answer.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
  if (name != nullptr && std::string_view(name) == "stalled.invalid") {
    std::this_thread::sleep_for(std::chrono::seconds(6));
    return EAI_AGAIN;
  }
  static const auto system =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return system(name, service, hints, result);
}

namespace pagejit {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const Entry& entry() {
  static const Entry entry = example_entry(1, 30'000);
  return entry;
}

const std::string& whole_answer() {
  static const std::string answer = http_answer(*encode_entry(entry()));
  return answer;
}

// Writes so many bytes of the answer, and no more.
void expect_lookup_times_out_after(size_t num_bytes) {
  RawServer server([=](RawConnection& connection) {
    connection.write(whole_answer().substr(0, num_bytes));
    connection.wait_for_close();
  });
  RemoteStore store(options_for(server.url()));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kTimeout), 1);
}

TEST(StallingServerTest, ALookupWithoutAnAnswerEndsInTime) { expect_lookup_times_out_after(0); }

TEST(StallingServerTest, ALookupThatStallsInTheHeaderEndsInTime) {
  expect_lookup_times_out_after(20);
}

TEST(StallingServerTest, ALookupThatStallsBeforeTheBodyEndsInTime) {
  expect_lookup_times_out_after(whole_answer().find("\r\n\r\n") + 4);
}

TEST(StallingServerTest, ALookupThatStallsBeforeTheLastByteEndsInTime) {
  expect_lookup_times_out_after(whole_answer().size() - 1);
}

TEST(StallingServerTest, ALookupWithAByteNowAndThenEndsInTime) {
  RawServer server([](RawConnection& connection) {
    for (const char byte : whole_answer()) {
      if (!connection.write({&byte, 1})) return;
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  RemoteStore store(options_for(server.url()));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kTimeout), 1);
}

TEST(StallingServerTest, AfterThreeTimeoutsLookupsCostNothing) {
  RawServer server([](RawConnection& connection) { connection.wait_for_close(); });
  RemoteStoreOptions options = options_for(server.url());
  options.total_timeout = milliseconds(100);
  RemoteStore store(options);
  const auto begin = steady_clock::now();
  for (int i = 0; i < 1000; ++i) store.lookup(entry().key);
  EXPECT_LT(steady_clock::now() - begin, kSoon);  // and not 100 s
  EXPECT_TRUE(cache::wait_for([&] { return server.num_connections() >= 3; }));
  EXPECT_EQ(server.num_connections(), 3);
}

TEST(StallingServerTest, AConnectionThatNobodyTakesIsGivenUpSoon) {
  // Once the queue of a listener is full, the kernel leaves who wants to connect without an answer.
  const int listener = listen_on_loopback(0, 0);
  const sockaddr_in address = loopback_address(port_of(listener));
  std::vector<int> waiting;
  for (bool full = false; !full && waiting.size() < 100;) {
    waiting.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(waiting.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    pollfd connected{waiting.back(), POLLOUT, 0};
    full = ::poll(&connected, 1, 100) == 0;
  }
  RemoteStoreOptions options = options_for("http://127.0.0.1:" + std::to_string(port_of(listener)));
  options.connect_timeout = RemoteStoreOptions().connect_timeout;
  options.total_timeout = std::chrono::seconds(30);
  RemoteStore store(options);
  const auto begin = steady_clock::now();
  EXPECT_EQ(store.lookup(entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_EQ(failures(store, HttpFailure::kTimeout), 1);
  for (const int fd : waiting) ::close(fd);
  ::close(listener);
}

TEST(StallingServerTest, ARefusedConnectionIsAFailureAtOnce) {
  const int listener = listen_on_loopback(0, 1);
  const std::string port = std::to_string(port_of(listener));
  ::close(listener);
  RemoteStoreOptions options = options_for("http://127.0.0.1:" + port);
  options.connect_timeout = options.total_timeout = std::chrono::seconds(30);
  RemoteStore store(options);
  const auto begin = steady_clock::now();
  const LookupResult found = store.lookup(entry().key);
  EXPECT_LT(steady_clock::now() - begin, kSoon);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_THAT(found.status.message(), testing::HasSubstr("127.0.0.1 port " + port));  // libcurl's
  EXPECT_EQ(failures(store, HttpFailure::kConnect), 1);
}

TEST(StallingServerTest, AHostWithoutARouteIsGivenUpInTime) {
  RemoteStore store(options_for("http://192.0.2.1:81"));  // RFC 5737: nobody has it
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(store.stats().failures_total() + store.stats().statuses.size(), 1);
}

TEST(StallingServerTest, ANameServerThatDoesNotAnswerIsGivenUpInTime) {
  RemoteStore store(options_for("http://stalled.invalid"));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(store.stats().failures_total(), 1);
}

// After the answer to HEAD that there is no such entry.
void expect_upload_fails(HttpFailure failure, const std::function<void(RawConnection&)>& put) {
  RawServer server([&](RawConnection& connection) {
    if (!connection.read_request().starts_with("HEAD")) return;
    connection.write(http_answer("", "404 Not Found"));
    if (connection.read_request().starts_with("PUT")) put(connection);
  });
  RemoteStore store(options_for(server.url()));
  upload_in_time(store, large_entry());
  EXPECT_EQ(store.stats().upload_failures, 1);
  EXPECT_EQ(failures(store, failure), 1);
  EXPECT_EQ(store.stats().failures_total(), 1);
}

TEST(StallingServerTest, AnUploadThatNobodyReadsEndsInTime) {
  expect_upload_fails(HttpFailure::kTimeout,
                      [](RawConnection& connection) { connection.wait_for_close_unread(); });
}

TEST(StallingServerTest, AnUploadWithoutAnAnswerEndsInTime) {
  expect_upload_fails(HttpFailure::kTimeout,
                      [](RawConnection& connection) { connection.wait_for_close(); });
}

TEST(StallingServerTest, AnUploadToAServerThatDiesInTheMiddleFails) {
  expect_upload_fails(HttpFailure::kIncomplete,
                      [](RawConnection& connection) { connection.skip(100'000); });
}

TEST(StallingServerTest, TheStoreEndsInTimeThoughAnUploadHangs) {
  RawServer server([](RawConnection& connection) { connection.wait_for_close(); });
  RemoteStoreOptions options = options_for(server.url());
  options.total_timeout = std::chrono::seconds(30);
  auto store = std::make_unique<RemoteStore>(options);
  for (int i = 0; i < 10; ++i) store->upload(example_entry(i));
  const auto begin = steady_clock::now();
  store.reset();
  EXPECT_LE(steady_clock::now() - begin, kTransferBound);
}

}  // namespace
}  // namespace pagejit
