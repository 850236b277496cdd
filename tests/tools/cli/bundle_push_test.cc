// `pagejit bundle push` as a user runs it, onto a real nginx, and what a client then gets from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cache/bundle_writer.h"
#include "cache/remote_url.h"
#include "runtime/engine/remote.h"
#include "runtime/engine/trust.h"
#include "tests/runtime/jit/test_support.h"
#include "tests/runtime/remote/loopback.h"
#include "tests/runtime/remote/nginx_server.h"
#include "tests/tools/cli/command_runner.h"
#include "tests/tools/cli/lost_output.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;
using cache::Entry;
using cache::example_entry;
using cache::LookupOutcome;
using cache::RemoteLayout;
using testing::HasSubstr;
using testing::Not;

// More than a store lets wait (RemoteStoreOptions::max_waiting_uploads).
constexpr int kMany = 100;

class BundlePushTest : public testing::Test {
 protected:
  void SetUp() override {
    PAGEJIT_NEEDS(!NginxServer::program().empty(), "nginx");
    server_ = std::make_unique<NginxServer>();
  }

  std::string path(const std::string& name) const { return runner_.folder() + "/" + name; }

  // A bundle of these numbers of example entries.
  std::string bundle(const std::string& name, int first, int end) const {
    cache::BundleWriter writer;
    for (int i = first; i < end; ++i) EXPECT_TRUE(writer.add(example_entry(i)));
    const Status status = writer.write_file(path(name));
    EXPECT_TRUE(status) << status.to_string();
    return path(name);
  }

  // The public key of a new key file.
  std::string make_key(const std::string& name) const {
    std::string key = runner_.run({"bundle", "keygen", "-o", path(name)}).out;
    EXPECT_EQ(key.size(), 65u);  // 64 digits and a line feed
    key.resize(64);
    return key;
  }

  CommandResult push(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"bundle", "push", "--remote", server_->url()});
    return runner_.run(arguments);
  }

  // How many of these entries an engine with such options takes from the server.
  int taken(int end, const std::string& trusted_key,
            pagejit::RemoteLayout layout = pagejit::RemoteLayout::kSubdirectories) const {
    EngineOptions options;
    options.remote = server_->url();
    options.remote_layout = layout;
    if (!trusted_key.empty()) options.trusted_keys = {trusted_key};
    options.require_signed = !trusted_key.empty();
    const Result<Trust> trust = make_trust(options);
    EXPECT_TRUE(trust.is_ok());
    RemoteDependencies dependencies;
    dependencies.logger = std::make_shared<Logger>(LogLevel::kOff, nullptr);
    dependencies.check_signature = [trust = *trust](std::string_view answer) {
      return trust.open_entry(answer);
    };
    const auto remote = make_remote(options, std::move(dependencies));
    EXPECT_TRUE(remote.is_ok());
    int count = 0;
    for (int i = 0; i < end; ++i) {
      const cache::LookupResult found = (*remote)->lookup(example_entry(i).key);
      if (found.outcome != LookupOutcome::kHit) continue;
      EXPECT_TRUE(*found.entry == example_entry(i));
      ++count;
    }
    return count;
  }

  fs::path file_of(const Entry& entry) const {
    return server_->root().string() +
           cache::RemoteUrl{"", ""}.of_entry(entry.key, RemoteLayout::kSubdirectories);
  }
  size_t num_files() const {
    size_t count = 0;
    for (const auto& file : fs::recursive_directory_iterator(server_->root())) {
      if (file.is_regular_file()) ++count;
    }
    return count;
  }

  // A library of this name that no program can open, in the folder lib of the runner.
  void break_library(const std::string& name) const {
    fs::create_directories(path("lib"));
    runner_.write_file("lib/" + name, "no library");
  }

  CommandRunner runner_;
  std::unique_ptr<NginxServer> server_;
};

TEST_F(BundlePushTest, AClientThatRequiresSignaturesTakesWhatWasPushedWithAKey) {
  const std::string key = make_key("key");
  const std::string other = make_key("other");
  const CommandResult result = push({bundle("a.pjb", 0, kMany), "--key-file", path("key")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "100 kernels: 100 uploaded, 0 were there already, 0 failed\n");
  EXPECT_EQ(taken(kMany, key), kMany);
  EXPECT_EQ(taken(kMany, ""), kMany);
  EXPECT_EQ(taken(kMany, other), 0);
}

TEST_F(BundlePushTest, ASecondRunUploadsOnlyWhatIsNew) {
  EXPECT_EQ(push({bundle("a.pjb", 0, 5)}).exit_code, 0);
  const CommandResult again = push({path("a.pjb"), bundle("b.pjb", 3, 8)});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(again.out, "8 kernels: 3 uploaded, 5 were there already, 0 failed\n");
  EXPECT_EQ(taken(8, ""), 8);
}

TEST_F(BundlePushTest, UnsignedKernelsAreReplacedBySignedOnesOnlyWhereAsked) {
  const std::string key = make_key("key");
  EXPECT_EQ(push({bundle("a.pjb", 0, 3)}).exit_code, 0);
  CommandResult result = push({path("a.pjb"), "--key-file", path("key")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("0 uploaded, 3 were there already"));
  EXPECT_THAT(result.err, HasSubstr("--replace"));
  EXPECT_EQ(taken(3, key), 0);

  result = push({path("a.pjb"), "--key-file", path("key"), "--replace"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "3 kernels: 3 uploaded, 0 were there already, 0 failed\n");
  EXPECT_EQ(taken(3, key), 3);
}

TEST_F(BundlePushTest, EachLayoutIsWhereAClientLooks) {
  bundle("a.pjb", 0, 2);
  const std::pair<const char*, pagejit::RemoteLayout> layouts[] = {
      {"flat", pagejit::RemoteLayout::kFlat},
      {"subdirs", pagejit::RemoteLayout::kSubdirectories},
      {"bazel", pagejit::RemoteLayout::kBazel}};
  for (const auto& [name, layout] : layouts) {
    EXPECT_EQ(taken(2, "", layout), 0) << name;
    EXPECT_EQ(push({path("a.pjb"), "--layout", name}).exit_code, 0);
    EXPECT_EQ(taken(2, "", layout), 2) << name;
  }
  EXPECT_EQ(push({path("a.pjb"), "--layout", "tree"}).exit_code, 1);
}

TEST_F(BundlePushTest, JsonSaysWhatBecameOfEachKernel) {
  EXPECT_EQ(push({bundle("a.pjb", 0, 2)}).exit_code, 0);
  std::istringstream lines(push({bundle("b.pjb", 0, 5), "--json"}).out);
  std::map<std::string, std::set<std::string>> keys;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_GT(json["bytes"], 128);
    keys[json["result"]].insert(json["key"]);
  }
  EXPECT_EQ(keys["uploaded"].size(), 3u);
  EXPECT_EQ(keys["present"], (std::set{example_entry(0).key.name(), example_entry(1).key.name()}));
  EXPECT_EQ(keys.size(), 2u);
}

TEST_F(BundlePushTest, AServerThatIsDownFailsAfterThreeTries) {
  bundle("a.pjb", 0, 10);
  server_->kill();
  const CommandResult result = push({path("a.pjb")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.out, "10 kernels: 0 uploaded, 0 were there already, 10 failed\n");
  EXPECT_THAT(result.err, HasSubstr(server_->url() + ": 3 kernels: no connection"));
  EXPECT_THAT(result.err, HasSubstr("7 kernels: not tried: no connection"));
  server_->start();
  EXPECT_THAT(push({path("a.pjb")}).out, HasSubstr("10 uploaded"));
}

TEST_F(BundlePushTest, AnInterruptEndsIt) {
  bundle("a.pjb", 0, 3);
  const int silent = listen_on_loopback(0, 1);  // takes connections and never answers
  pollfd connected{silent, POLLIN, 0};
  const CommandResult result =
      runner_.run_and_interrupt({"bundle", "push", path("a.pjb"), "--remote",
                                 "http://127.0.0.1:" + std::to_string(port_of(silent))},
                                [&] { return ::poll(&connected, 1, 0) == 1; });
  ::close(silent);
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_THAT(result.err, HasSubstr("interrupted, 3 kernels left"));
  EXPECT_THAT(result.out, HasSubstr("0 uploaded, 0 were there already, 0 failed"));
}

TEST_F(BundlePushTest, OutputThatIsLostIsTold) {
  bundle("a.pjb", 0, 3);
  expect_lost_output_is_told([&](const std::function<void()>& prepare) {
    return runner_.run({"bundle", "push", "--remote", server_->url(), path("a.pjb")}, prepare);
  });
}

TEST_F(BundlePushTest, AServerThatRefusesIsTold) {
  server_ =
      std::make_unique<NginxServer>(NginxOptions{.in_location = "limit_except GET { deny all; }"});
  CommandResult result = push({bundle("a.pjb", 0, 5)});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.out, HasSubstr("5 failed"));
  EXPECT_THAT(result.err, HasSubstr("5 kernels: the server answers with status 403"));
  result = push({path("a.pjb"), "--json"});
  EXPECT_THAT(result.out, HasSubstr("\"result\":\"failed\",\"bytes\":"));
}

TEST_F(BundlePushTest, NothingOfADamagedBundleOrOfItsNeighboursIsPushed) {
  bundle("good.pjb", 0, 3);
  std::string bytes = cache::read_file(bundle("bad.pjb", 5, 8));
  bytes[bytes.size() - 100] ^= 1;  // in the last entry
  runner_.write_file("bad.pjb", bytes);
  CommandResult result = push({path("good.pjb"), path("bad.pjb")});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("1 of 3 entries fail"));
  EXPECT_EQ(result.out, "");
  runner_.write_file("cut.pjb", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(push({path("good.pjb"), path("cut.pjb")}).exit_code, 5);
  EXPECT_EQ(push({path("good.pjb"), path("none.pjb")}).exit_code, 4);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(BundlePushTest, ABundleThatOthersCanWriteIsRefused) {
  bundle("a.pjb", 0, 1);
  fs::permissions(path("a.pjb"), fs::perms::all);
  EXPECT_EQ(push({path("a.pjb")}).exit_code, 4);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(BundlePushTest, TwoEntriesOfOneKeyAreRefused) {
  bundle("a.pjb", 0, 2);
  Entry other = example_entry(1);
  other.image += 'y';
  cache::BundleWriter writer;
  EXPECT_TRUE(writer.add(other));
  EXPECT_TRUE(writer.write_file(path("b.pjb")));
  const CommandResult result = push({path("a.pjb"), path("b.pjb")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("another entry of the key " + other.key.name()));
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(BundlePushTest, WhatIsMissingOrWrongOnTheCommandLine) {
  bundle("a.pjb", 0, 1);
  const CommandResult result =
      runner_.run({"bundle", "push", path("a.pjb"), "--remote", "ftp://user:s3cret@example.org/"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--remote"));
  EXPECT_THAT(result.err, Not(HasSubstr("s3cret")));
  EXPECT_EQ(runner_.run({"bundle", "push", path("a.pjb")}).exit_code, 1);
  EXPECT_EQ(push({}).exit_code, 1);
  EXPECT_EQ(push({path("a.pjb"), "--key-file", path("none.key")}).exit_code, 4);
  EXPECT_EQ(push({path("a.pjb"), "--key-file", path("a.pjb")}).exit_code, 1);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(BundlePushTest, WithoutLibcurlOrLibsodiumTheMachineIsAtFault) {
  bundle("a.pjb", 0, 4);
  make_key("key");
  for (const char* name : {"libsodium.so.23", "libsodium.so.26", "libsodium.so"}) {
    break_library(name);
  }
  runner_.set_variable("LD_LIBRARY_PATH", path("lib"));
  CommandResult result = push({path("a.pjb"), "--key-file", path("key")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("libsodium"));
  EXPECT_EQ(num_files(), 0u);

  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) break_library(name);
  result = push({path("a.pjb")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("libcurl was not found"));
  EXPECT_THAT(result.out, HasSubstr("4 failed"));
}

}  // namespace
}  // namespace pagejit::cli
