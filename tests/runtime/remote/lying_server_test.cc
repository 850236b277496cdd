#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/runtime/remote/raw_server.h"
#include "tests/runtime/remote/remote_fixture.h"

namespace pagejit {
namespace {

using testing::HasSubstr;
using testing::Not;

const Entry& entry() {
  static const Entry entry = example_entry(1, 30'000);
  return entry;
}

std::string entry_bytes() { return *encode_entry(entry()); }

// Answers each request with the same bytes and then closes.
RawServer::Handler answering(std::string bytes) {
  return [bytes = std::move(bytes)](RawConnection& connection) {
    if (!connection.read_request().empty()) connection.write(bytes);
  };
}

TEST(LyingServerTest, AnHonestAnswerIsAHit) {
  RawServer server(answering(http_answer(entry_bytes())));
  RemoteStore store(options_for(server.url()));
  const LookupResult found = lookup_in_time(store, entry().key);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit) << found.status.to_string();
  EXPECT_TRUE(*found.entry == entry());
}

TEST(LyingServerTest, TheEntryOfAnotherKeyIsCorrupt) {
  RawServer server(answering(http_answer(*encode_entry(example_entry(2)))));
  RemoteStore store(options_for(server.url()));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(corrupt(store, Corruption::kWrongKey), 1);
}

TEST(LyingServerTest, AnAnswerShorterThanItsLengthIsAFailure) {
  std::string answer = http_answer(entry_bytes());
  answer.resize(answer.size() - 1);
  RawServer server(answering(answer));
  RemoteStore store(options_for(server.url()));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kIncomplete), 1);
}

TEST(LyingServerTest, ATruncatedAnswerWithTheRightLengthOrNoneIsCorrupt) {
  const std::string half = entry_bytes().substr(0, 15'000);
  for (const std::string& answer :
       {http_answer(half), "HTTP/1.1 200 OK\r\n\r\n" + half, "HTTP/1.0 200 OK\r\n\r\n" + half}) {
    RawServer server(answering(answer));
    RemoteStore store(options_for(server.url()));
    EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kCorrupt);
    EXPECT_EQ(corrupt(store, Corruption::kTruncated), 1);
  }
}

TEST(LyingServerTest, ABodyWithoutEndIsBrokenOffAtTheLimit) {
  std::atomic<size_t> sent{0};
  RawServer server([&](RawConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 OK\r\n\r\n");
    const std::string chunk(100'000, 'x');
    while (connection.write(chunk)) sent += chunk.size();
  });
  RemoteStoreOptions options = options_for(server.url());
  options.max_answer_bytes = 1'000'000;
  RemoteStore store(options);
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(corrupt(store, Corruption::kLength), 1);
  // What is more lies in the buffers of both sockets.
  EXPECT_LT(sent, 30'000'000);
}

TEST(LyingServerTest, AClaimOfATooLargeBodyIsRefusedAtOnce) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
    connection.wait_for_close();
  });
  RemoteStoreOptions options = options_for(server.url());
  options.total_timeout = std::chrono::seconds(30);
  RemoteStore store(options);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(store.lookup(entry().key).outcome, LookupOutcome::kCorrupt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

TEST(LyingServerTest, AnErrorPageWithoutEndIsTheErrorThatItIs) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 99999999999\r\n\r\n");
    while (connection.write(std::string(100'000, 'x'))) {
    }
  });
  RemoteStore store(options_for(server.url()));
  const LookupResult found = lookup_in_time(store, entry().key);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_TRUE(found.status) << found.status.to_string();
}

TEST(LyingServerTest, GarbageForAHeaderIsAFailure) {
  const std::string zeros(1000, '\0');
  for (const std::string& answer :
       {std::string("\xff\xfe\x00garbage\r\n\r\n", 14), entry_bytes(), zeros,
        std::string("\r\n\r\n"), "HTTP/9.9 200 OK\r\n\r\n" + entry_bytes(),
        "HTTP/1.1 -1 x\r\n\r\n" + entry_bytes(),
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + entry_bytes(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n" + entry_bytes(),
        std::string("HTTP/1.1 302 Found\r\nLocation: gopher://h/\r\n\r\n"), std::string()}) {
    RawServer server(answering(answer));
    RemoteStore store(options_for(server.url()));
    const LookupResult found = lookup_in_time(store, entry().key);
    EXPECT_NE(found.outcome, LookupOutcome::kHit) << answer.substr(0, 40);
    EXPECT_FALSE(found.status) << answer.substr(0, 40);
    EXPECT_EQ(found.entry, nullptr);
  }
}

TEST(LyingServerTest, AHeaderWithoutEndIsBrokenOff) {
  for (const char* line :
       {"X: 0123456789012345678901234567890123456789\r\n", "x", "\r\nHTTP/1.1 100 Continue\r\n"}) {
    RawServer server([=](RawConnection& connection) {
      connection.read_request();
      connection.write("HTTP/1.1 100 Continue\r\n");
      while (connection.write(line)) {
      }
    });
    RemoteStore store(options_for(server.url()));
    EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss) << line;
    EXPECT_EQ(failures(store, HttpFailure::kProtocol), 1) << line;
  }
}

TEST(LyingServerTest, ARedirectLoopEndsAfterThree) {
  RawServer server(
      answering("HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"));
  RemoteStore store(options_for(server.url()));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kRedirect), 1);
  EXPECT_EQ(server.num_connections(), 4);
}

TEST(LyingServerTest, ARedirectElsewhereDoesNotGetThePassword) {
  std::mutex mutex;
  std::string asked;
  RawServer other([&](RawConnection& connection) {
    const std::string request = connection.read_request();
    const std::lock_guard lock(mutex);
    asked += request;
    connection.write(http_answer(entry_bytes()));
  });
  std::string first;
  RawServer server([&](RawConnection& connection) {
    first = connection.read_request();
    // Another host's name for the same machine: credentials are a host's.
    std::string elsewhere = other.url();
    elsewhere.replace(elsewhere.find("127.0.0.1"), 9, "localhost");
    connection.write("HTTP/1.1 302 Found\r\nLocation: " + elsewhere +
                     "/x\r\nContent-Length: 0\r\n\r\n");
  });
  RemoteStore store(options_for("http://user:secret@" + server.url().substr(7)));
  EXPECT_EQ(lookup_in_time(store, entry().key).outcome, LookupOutcome::kHit);
  EXPECT_THAT(first, HasSubstr("Authorization: Basic"));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(asked, HasSubstr("GET /x"));
  EXPECT_THAT(asked, Not(HasSubstr("Authorization")));
}

TEST(LyingServerTest, CookiesAreNotKept) {
  std::mutex mutex;
  std::string asked;
  RawServer server([&](RawConnection& connection) {
    for (std::string request; !(request = connection.read_request()).empty();) {
      {
        const std::lock_guard lock(mutex);
        asked += request;
      }
      connection.write(http_answer("", "404 Not Found\r\nSet-Cookie: a=b"));
    }
  });
  {
    RemoteStore store(options_for(server.url()));
    store.lookup(entry().key);
    store.lookup(entry().key);
  }
  const std::lock_guard lock(mutex);
  EXPECT_THAT(asked, Not(HasSubstr("Cookie")));
  EXPECT_THAT(asked, HasSubstr("User-Agent: pagejit"));
}

TEST(LyingServerTest, AProxyInTheEnvironmentIsNotUsed) {
  RawServer server(answering(http_answer(entry_bytes())));
  const RemoteStoreOptions options = options_for(server.url());
  cache::ChildProcess child([&] {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) {
      ::setenv(name, "http://127.0.0.1:1", 1);
    }
    RemoteStore store(options);
    return store.lookup(entry().key).outcome == LookupOutcome::kHit ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace pagejit
