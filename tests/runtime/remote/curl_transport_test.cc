#include "runtime/optional/curl_transport.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <memory>

#include "tests/runtime/remote/raw_server.h"
#include "tests/runtime/remote/remote_fixture.h"

namespace pagejit {
namespace {

using cache::HttpAnswer;
using cache::HttpMethod;
using cache::HttpRequest;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

HttpRequest request_to(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.max_body_bytes = 1000;
  request.connect_timeout = std::chrono::seconds(2);
  request.total_timeout = kSoon;
  return request;
}

TEST(CurlTransportTest, WithoutLibcurlNothingIsAvailable) {
  CurlTransport transport({"libno-such-curl.so.4", "/dev/null"});
  const HttpAnswer answer = transport.send(request_to("http://127.0.0.1:1"));
  EXPECT_EQ(answer.failure, HttpFailure::kUnavailable);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("libcurl was not found"),
                                   HasSubstr("libno-such-curl.so.4"), HasSubstr("/dev/null")));
}

TEST(CurlTransportTest, ALibraryThatIsNotLibcurlIsRefused) {
  EXPECT_THAT(CurlLibrary::open({"libm.so.6"}).status().message(), HasSubstr("libm.so.6 has no"));
}

TEST(CurlTransportTest, TheLibraryIsOpenedByTheFirstRequest) {
  const CurlTransport transport({"libno-such-curl.so.4"});  // no failure yet
}

TEST(CurlTransportTest, WhatIsSentIsThis) {
  std::string head;
  std::string put;
  RawServer server([&](RawConnection& connection) {
    head = connection.read_request();
    connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n");
    put = connection.read_request();
    connection.skip(3);
    connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  });
  CurlTransport transport;
  HttpRequest request = request_to(server.url() + "/x");
  request.method = HttpMethod::kHead;
  EXPECT_EQ(transport.send(request).status, 404);
  request.method = HttpMethod::kPut;
  request.body = std::string_view("a\0b", 3);
  request.if_none_match = true;
  EXPECT_EQ(transport.send(request).status, 201);
  EXPECT_THAT(head, StartsWith("HEAD /x HTTP/1.1\r\n"));
  EXPECT_THAT(put, StartsWith("PUT /x HTTP/1.1\r\n"));
  EXPECT_THAT(put,
              AllOf(HasSubstr("\r\nContent-Length: 3\r\n"), HasSubstr("\r\nIf-None-Match: *\r\n"),
                    HasSubstr("\r\nContent-Type: application/octet-stream\r\n")));
}

TEST(CurlTransportTest, AnEmptyBodyIsAnAnswerToo) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write(http_answer(""));
  });
  const HttpAnswer answer = CurlTransport().send(request_to(server.url()));
  EXPECT_EQ(answer.failure, HttpFailure::kNone);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
}

TEST(CurlTransportTest, ABodyMayBeAsLargeAsTheLimitAndNoLarger) {
  for (const size_t size : {size_t{1000}, size_t{1001}}) {
    for (const bool with_length : {false, true}) {
      RawServer server([=](RawConnection& connection) {
        connection.read_request();
        const std::string body(size, 'x');
        connection.write(with_length ? http_answer(body) : "HTTP/1.1 200 OK\r\n\r\n" + body);
      });
      const HttpAnswer answer = CurlTransport().send(request_to(server.url()));
      EXPECT_EQ(answer.failure, size > 1000 ? HttpFailure::kTooLarge : HttpFailure::kNone);
      EXPECT_EQ(answer.body.size(), size > 1000 ? 0 : size);
    }
  }
}

TEST(CurlTransportTest, ACancelledRequestEndsSoon) {
  std::atomic<bool> cancelled{false};
  RawServer server([&](RawConnection& connection) {
    connection.read_request();
    cancelled = true;
    connection.wait_for_close();
  });
  HttpRequest request = request_to(server.url());
  request.cancelled = &cancelled;
  request.total_timeout = std::chrono::seconds(30);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(CurlTransport().send(request).failure, HttpFailure::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
}

TEST(CurlTransportTest, SignalsAreLeftAsTheyWere) {
  struct sigaction before;
  ::sigaction(SIGPIPE, nullptr, &before);
  RawServer server([](RawConnection& connection) { connection.read_request(); });
  HttpRequest request = request_to(server.url());
  const std::string body(4'000'000, 'x');
  request.method = HttpMethod::kPut;
  request.body = body;
  EXPECT_EQ(CurlTransport().send(request).failure, HttpFailure::kIncomplete);
  struct sigaction after;
  ::sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 0);
  sigset_t pending;
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace pagejit
