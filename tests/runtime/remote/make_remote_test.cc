#include <gmock/gmock.h>

#include <mutex>
#include <string>
#include <vector>

#include "runtime/engine/remote.h"
#include "tests/cache/scripted_transport.h"
#include "tests/runtime/remote/remote_fixture.h"

namespace pagejit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class MakeRemoteTest : public testing::Test {
 protected:
  Result<std::unique_ptr<RemoteStore>> make(std::shared_ptr<cache::HttpTransport> transport) {
    RemoteDependencies dependencies;
    dependencies.logger = logger_;
    dependencies.transport = std::move(transport);
    return make_remote(options_, std::move(dependencies));
  }

  EngineOptions options_;
  std::vector<std::string> lines_;
  const std::shared_ptr<const Logger> logger_ = std::make_shared<Logger>(
      LogLevel::kInfo, [this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
};

TEST_F(MakeRemoteTest, WithoutAUrlThereIsNone) {
  const auto remote = make(nullptr);
  ASSERT_TRUE(remote);
  EXPECT_EQ(*remote, nullptr);
}

TEST_F(MakeRemoteTest, AMalformedUrlIsRefusedWithoutItsPassword) {
  options_.remote = "ftp://user:secret@h/";
  const auto remote = make(nullptr);
  EXPECT_EQ(remote.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(remote.status().message(), Not(HasSubstr("secret")));
}

TEST_F(MakeRemoteTest, TheLayoutAndTheWritingAreThoseOfTheOptions) {
  const Entry entry = example_entry(1);
  const std::pair<RemoteLayout, std::string> layouts[] = {
      {RemoteLayout::kFlat, "http://h/p/" + entry.key.file_name()},
      {RemoteLayout::kSubdirectories,
       "http://h/p/" + entry.key.name().substr(0, 2) + "/" + entry.key.file_name()},
      {RemoteLayout::kBazel, "http://h/p/ac/" + cache::to_hex(cache::sha256({entry.key.name()}))}};
  options_.remote = "http://h/p";
  for (const auto& [layout, url] : layouts) {
    for (const bool write : {false, true}) {
      options_.remote_layout = layout;
      options_.remote_write = write;
      const auto transport = std::make_shared<cache::ScriptedTransport>();
      const auto remote = make(transport);
      ASSERT_TRUE(remote);
      remote.value()->upload(entry);
      ASSERT_TRUE(remote.value()->flush(kSoon));
      EXPECT_EQ(transport->files().contains(url), write) << url;
    }
  }
}

TEST_F(MakeRemoteTest, AMissingLibcurlIsOneWarningAndNoRemote) {
  options_.remote = "http://user:secret@h/p";
  const auto remote =
      make(std::make_shared<CurlTransport>(std::vector<std::string>{"libno-such-curl.so.4"}));
  ASSERT_TRUE(remote);
  EXPECT_THAT(lines_, IsEmpty());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(remote.value()->lookup(example_entry(i).key).outcome, LookupOutcome::kMiss);
  }
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], AllOf(HasSubstr("remote http://h/p"), HasSubstr("libcurl was not found"),
                               Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace pagejit
