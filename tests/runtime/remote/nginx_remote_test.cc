#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/runtime/jit/test_support.h"
#include "tests/runtime/remote/loopback.h"
#include "tests/runtime/remote/nginx_server.h"
#include "tests/runtime/remote/remote_fixture.h"

namespace pagejit {
namespace {

namespace fs = std::filesystem;

using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;

class NginxRemoteTest : public testing::Test {
 protected:
  void SetUp() override { PAGEJIT_NEEDS(!NginxServer::program().empty(), "nginx"); }
  void TearDown() override {
    if (HasFailure() && server_ != nullptr) ADD_FAILURE() << server_->error_log();
  }
  NginxServer& serve(NginxOptions options = {}) {
    server_ = std::make_unique<NginxServer>(std::move(options));
    return *server_;
  }
  // Where the entry lies on the server.
  fs::path file_of(const Entry& entry,
                   cache::RemoteLayout layout = cache::RemoteLayout::kSubdirectories) const {
    return server_->root().string() + cache::RemoteUrl{"", ""}.of_entry(entry.key, layout);
  }
  // The log's lines, this many of them: nginx writes them after its answers.
  std::vector<std::string> wait_for_log(size_t num_lines) const {
    std::vector<std::string> lines;
    EXPECT_TRUE(cache::wait_for([&] {
      std::istringstream log(server_->access_log());
      lines.clear();
      for (std::string line; std::getline(log, line);) lines.push_back(line);
      return lines.size() >= num_lines;
    }));
    lines.resize(num_lines);
    return lines;
  }
  void put_there(const Entry& entry, const std::string& bytes) {
    fs::create_directories(file_of(entry).parent_path());
    cache::write_file(file_of(entry), bytes, 0644);
  }

  const Entry entry_ = example_entry(1, 30'000);
  std::unique_ptr<NginxServer> server_;
};

TEST_F(NginxRemoteTest, EntriesGoThereAndBackInEachLayout) {
  serve();
  for (const cache::RemoteLayout layout :
       {cache::RemoteLayout::kFlat, cache::RemoteLayout::kSubdirectories,
        cache::RemoteLayout::kBazel}) {
    RemoteStoreOptions options = options_for(server_->url());
    options.layout = layout;
    RemoteStore writer(options);
    EXPECT_EQ(writer.lookup(entry_.key).outcome, LookupOutcome::kMiss);
    writer.upload(entry_);
    ASSERT_TRUE(writer.flush(kSoon));
    EXPECT_EQ(writer.stats().uploads, 1);
    EXPECT_TRUE(cache::read_file(file_of(entry_, layout)) == *encode_entry(entry_));

    RemoteStore reader(options);
    const LookupResult found = reader.lookup(entry_.key);
    ASSERT_EQ(found.outcome, LookupOutcome::kHit) << found.status.to_string();
    EXPECT_TRUE(*found.entry == entry_);
    EXPECT_EQ(reader.stats().failures_total(), 0);
  }
  EXPECT_TRUE(fs::is_directory(server_->root() / "ac"));
}

TEST_F(NginxRemoteTest, WhatIsThereIsNotUploadedAgain) {
  RemoteStore store(options_for(serve().url()));
  put_there(entry_, "something that is not looked at");
  store.upload(entry_);
  ASSERT_TRUE(store.flush(kSoon));
  EXPECT_EQ(store.stats().uploads_present, 1);
  EXPECT_EQ(cache::read_file(file_of(entry_)), "something that is not looked at");
}

TEST_F(NginxRemoteTest, ADamagedFileIsCorruptAndReplacedByAnUpload) {
  RemoteStore store(options_for(serve().url()));
  put_there(entry_, encode_entry(entry_)->substr(0, 20'000));
  EXPECT_EQ(store.lookup(entry_.key).corruption, Corruption::kTruncated);
  store.upload(entry_);
  ASSERT_TRUE(store.flush(kSoon));
  EXPECT_EQ(store.lookup(entry_.key).outcome, LookupOutcome::kHit);
}

TEST_F(NginxRemoteTest, ALargeEntryGoesThereAndBack) {
  RemoteStore store(options_for(serve({.in_location = "client_max_body_size 8m;"}).url()));
  const Entry large = example_entry(2, 4'000'000);
  store.upload(large);
  ASSERT_TRUE(store.flush(kSoon));
  EXPECT_EQ(store.stats().uploads, 1);
  const LookupResult found = lookup_in_time(store, large.key);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit) << found.status.to_string();
  EXPECT_TRUE(*found.entry == large);
}

TEST_F(NginxRemoteTest, LookupsKeepTheirConnection) {
  RemoteStore store(options_for(serve().url()));
  for (int i = 0; i < 5; ++i) store.lookup(entry_.key);
  const std::vector<std::string> log = wait_for_log(5);
  EXPECT_THAT(log[0], EndsWith(" GET 404"));
  EXPECT_THAT(log, Each(log[0]));  // the same number of the connection
}

TEST_F(NginxRemoteTest, ThreadsAskAtOneTime) {
  serve();
  put_there(entry_, *encode_entry(entry_));
  RemoteStore store(options_for(server_->url()));
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {  // more than handles are kept
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        if (store.lookup(entry_.key).outcome == LookupOutcome::kHit) ++hits;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hits, 120);
}

TEST_F(NginxRemoteTest, AForkedChildUsesConnectionsOfItsOwn) {
  serve();
  put_there(entry_, *encode_entry(entry_));
  RemoteStore store(options_for(server_->url()));
  const auto hits = [&] { return store.lookup(entry_.key).outcome == LookupOutcome::kHit; };
  EXPECT_TRUE(hits());
  cache::ChildProcess child([&] { return hits() && hits() ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(hits());
  const std::vector<std::string> lines = wait_for_log(4);
  EXPECT_EQ(lines[0], lines[3]);
  EXPECT_EQ(lines[1], lines[2]);
  EXPECT_NE(lines[0], lines[1]);
}

// The order of the kernel store: the own directory, the remote, a compile.
struct Machine {
  explicit Machine(const std::string& url)
      : disk(cache::open_cache(directory.cache())), remote(options_for(url)) {}

  // Whether it had to compile.
  bool acquire(const Entry& wanted, Entry* got) {
    LookupResult found = disk->lookup(wanted.key);
    if (found.outcome != LookupOutcome::kHit) {
      found = remote.lookup(wanted.key);
      if (found.outcome == LookupOutcome::kHit) {
        EXPECT_TRUE(disk->publish(*found.entry));
      }
    }
    if (found.outcome == LookupOutcome::kHit) {
      *got = *found.entry;
      return false;
    }
    *got = wanted;
    EXPECT_TRUE(disk->publish(wanted));
    remote.upload(wanted);
    return true;
  }

  cache::TestDirectory directory;
  std::unique_ptr<cache::DiskCache> disk;
  RemoteStore remote;
};

TEST_F(NginxRemoteTest, WhatOneProcessCompilesAnotherWithAnotherDirectoryDoesNot) {
  serve();
  cache::SharedMemory<std::atomic<int>> compiles;
  const auto run = [&] {
    Machine machine(server_->url());
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 8; ++i) {
        Entry got;
        if (machine.acquire(example_entry(i, 20'000), &got)) ++*compiles;
        if (got != example_entry(i, 20'000)) return 1;
      }
    }
    const bool ok = machine.remote.flush(kSoon) && !testing::Test::HasFailure();
    // The second round came from the directory.
    return ok && machine.remote.stats().hits + machine.remote.stats().misses == 8 ? 0 : 2;
  };
  EXPECT_EQ(cache::ChildProcess(run).wait(), 0);
  EXPECT_EQ(*compiles, 8);
  EXPECT_EQ(cache::ChildProcess(run).wait(), 0);
  EXPECT_EQ(*compiles, 8);
}

// nginx writes a body aside and renames it, as a publisher of the directory does.
TEST_F(NginxRemoteTest, AServerThatIsKilledDuringAPutServesNoHalfEntry) {
  serve();
  const std::string bytes = *encode_entry(entry_);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback_address(server_->port());
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string half =
      "PUT " + file_of(entry_).string().substr(server_->root().string().size()) +
      " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(bytes.size()) + "\r\n\r\n" +
      bytes.substr(0, bytes.size() - 100);
  ASSERT_EQ(::send(fd, half.data(), half.size(), MSG_NOSIGNAL), static_cast<ssize_t>(half.size()));
  ASSERT_TRUE(cache::wait_for([&] {  // until it has begun to write
    const fs::path temporaries = server_->folder() / "client_body";
    for (const std::string& name : cache::list(temporaries)) {
      if (fs::file_size(temporaries / name) > 0) return true;
    }
    return false;
  }));
  server_->kill();
  ::close(fd);
  RemoteStore store(options_for(server_->url()));
  EXPECT_EQ(lookup_in_time(store, entry_.key).outcome, LookupOutcome::kMiss);
  upload_in_time(store, entry_);
  EXPECT_EQ(failures(store, HttpFailure::kConnect), 2);
  EXPECT_EQ(store.stats().upload_failures, 1);

  server_->start();
  const LookupResult found = lookup_in_time(store, entry_.key);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_TRUE(found.status) << found.status.to_string();
  upload_in_time(store, entry_);
  EXPECT_EQ(lookup_in_time(store, entry_.key).outcome, LookupOutcome::kHit);
}

TEST_F(NginxRemoteTest, AServerThatIsStartedAnewIsUsedAgainAtOnce) {
  RemoteStore store(options_for(serve().url()));
  put_there(entry_, *encode_entry(entry_));
  EXPECT_EQ(store.lookup(entry_.key).outcome, LookupOutcome::kHit);
  server_->start();  // the kept connection is dead
  EXPECT_EQ(lookup_in_time(store, entry_.key).outcome, LookupOutcome::kHit);
  EXPECT_EQ(store.stats().failures_total(), 0);
}

TEST_F(NginxRemoteTest, ASlowServerIsGivenUpInTime) {
  RemoteStore store(options_for(serve({.in_location = "limit_rate 2k;"}).url()));
  put_there(entry_, *encode_entry(entry_));
  const LookupResult found = lookup_in_time(store, entry_.key);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kTimeout), 1);
}

TEST_F(NginxRemoteTest, AnEntryThatTheServerFindsTooLargeIsAFailedUpload) {
  RemoteStore store(options_for(serve({.in_location = "client_max_body_size 10k;"}).url()));
  upload_in_time(store, entry_);
  upload_in_time(store, large_entry());  // refused while it is still being sent
  EXPECT_EQ(store.stats().statuses[413], 2);
  EXPECT_EQ(store.stats().upload_failures, 2);
  EXPECT_EQ(store.lookup(entry_.key).outcome, LookupOutcome::kMiss);
  upload_in_time(store, example_entry(3));
  EXPECT_EQ(store.stats().uploads, 1);
}

TEST_F(NginxRemoteTest, AServerWhoseDiskIsFullKeepsServingWhatItHas) {
  NginxOptions nginx;
  nginx.max_file_bytes = 20'000;
  RemoteStore store(options_for(serve(nginx).url()));
  const Entry there = example_entry(2);
  put_there(there, *encode_entry(there));
  for (int i = 0; i < 5; ++i) upload_in_time(store, example_entry(10 + i, 30'000));
  EXPECT_EQ(store.stats().upload_failures, 3);
  EXPECT_EQ(store.stats().upload_skips, 2);
  EXPECT_TRUE(store.stats().upload_breaker.is_open);
  EXPECT_EQ(store.lookup(there.key).outcome, LookupOutcome::kHit);
  for (int i = 0; i < 5; ++i) {  // and nothing of the others
    const LookupResult found = store.lookup(example_entry(10 + i).key);
    EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
    EXPECT_TRUE(found.status);
  }
}

TEST_F(NginxRemoteTest, AReadOnlyServerRefusesUploads) {
  RemoteStore store(options_for(serve({.in_location = "limit_except GET { deny all; }"}).url()));
  upload_in_time(store, entry_);
  EXPECT_EQ(store.stats().statuses[403], 1);
  EXPECT_FALSE(store.stats().upload_breaker.is_open);
}

TEST_F(NginxRemoteTest, RedirectsAreFollowedThreeTimes) {
  serve({.in_server = "location ~ ^/0(/.*)$ { return 302 $1; }\n"
                      "location ~ ^/([1-9])(/.*)$ { return 307 /0$2; }\n"
                      "location ~ ^/a(/.*)$ { return 301 /1$1; }\n"
                      "location ~ ^/b(/.*)$ { return 308 /a$1; }\n"
                      "location /loop { return 302 $request_uri; }\n"
                      "location /ftp { return 302 ftp://127.0.0.1:1/; }\n"
                      "location /file { return 302 file:///etc/passwd; }\n"});
  put_there(entry_, *encode_entry(entry_));
  for (const char* path : {"/0", "/1", "/a"}) {
    RemoteStore store(options_for(server_->url() + path));
    EXPECT_EQ(store.lookup(entry_.key).outcome, LookupOutcome::kHit) << path;
  }
  for (const char* path : {"/b", "/loop", "/ftp", "/file"}) {
    RemoteStore store(options_for(server_->url() + path));
    EXPECT_EQ(lookup_in_time(store, entry_.key).outcome, LookupOutcome::kMiss) << path;
    EXPECT_EQ(failures(store, HttpFailure::kRedirect), 1) << path;
  }
  // An upload follows none.
  RemoteStore store(options_for(server_->url() + "/0"));
  upload_in_time(store, example_entry(2));
  EXPECT_EQ(store.stats().statuses[302], 1);
}

TEST_F(NginxRemoteTest, ANameAndAPasswordInTheUrlAreUsedAndNotTold) {
  serve();
  cache::write_file(server_->folder() / "users", "user:{PLAIN}s3cret\n", 0644);
  NginxOptions options;
  options.in_location =
      "auth_basic pagejit; auth_basic_user_file " + (server_->folder() / "users").string() + ";";
  NginxServer guarded(options);
  const std::string host = guarded.url().substr(7);
  RemoteStore store(options_for("http://user:s3cret@" + host));
  upload_in_time(store, entry_);
  EXPECT_EQ(store.lookup(entry_.key).outcome, LookupOutcome::kHit);
  RemoteStore stranger(options_for("http://user:wr0ng@" + host));
  const LookupResult found = stranger.lookup(entry_.key);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_EQ(found.status.message(), "remote http://" + host + " answers with status 401");
}

TEST_F(NginxRemoteTest, ACertificateThatNobodyVouchesForIsRefused) {
  const cache::TestDirectory keys;
  const std::string name = keys.path() / "key";
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "
      "/CN=localhost"
      " -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout " +
      name + ".key -out " + name + ".crt >/dev/null 2>&1";
  PAGEJIT_NEEDS(std::system(make.c_str()) == 0, "openssl command");
  NginxOptions options;
  options.listen_suffix = " ssl";
  options.in_server = "ssl_certificate " + name + ".crt; ssl_certificate_key " + name + ".key;";
  NginxServer secure(options);
  RemoteStore store(options_for("https://127.0.0.1:" + std::to_string(secure.port())));
  const LookupResult found = lookup_in_time(store, entry_.key);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_EQ(failures(store, HttpFailure::kConnect), 1) << found.status.to_string();
  EXPECT_THAT(found.status.message(), HasSubstr("certificate"));
}

}  // namespace
}  // namespace pagejit
