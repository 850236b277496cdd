#include "cache/bundle_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <random>

#include "tests/cache/bundle_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;

TEST(BundleWriterTest, TheOrderOfTheEntriesDoesNotMatter) {
  std::vector<Entry> entries = example_entries(20);
  entries[7].key.source = entries[3].key.source;
  entries[7].key.compiler.fill(1);
  const std::string bytes = bundle_of(entries);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(entries.begin(), entries.end(), random);
    ASSERT_EQ(bundle_of(entries), bytes);
  }
}

TEST(BundleWriterTest, EqualEntriesAreWrittenOnce) {
  const std::vector<Entry> entries = example_entries(3);
  BundleWriter writer;
  for (int i = 0; i < 3; ++i) {
    for (const Entry& entry : entries) EXPECT_TRUE(writer.add(entry));
  }
  EXPECT_EQ(writer.num_entries(), 3u);
  EXPECT_EQ(written(writer), bundle_of(entries));
}

TEST(BundleWriterTest, TwoEntriesOfOneKeyAreRefused) {
  Entry entry = example_entry(1);
  BundleWriter writer;
  ASSERT_TRUE(writer.add(entry));
  entry.image += 'x';
  const Status status = writer.add(entry);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(to_hex(entry.key.source)));
  EXPECT_EQ(written(writer), bundle_of({example_entry(1)}));
}

TEST(BundleWriterTest, MergedShardsAreTheBundleOfOneRun) {
  const std::vector<Entry> entries = example_entries(30);
  std::vector<std::string> shards;
  for (size_t begin : {0, 10, 20}) {
    const auto first = entries.begin() + static_cast<ptrdiff_t>(begin);
    shards.push_back(bundle_of({first, first + 10}));
  }
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, std::vector<int>{2, 0, 1, 1}}) {
    std::vector<std::unique_ptr<Bundle>> bundles;
    BundleWriter writer;
    for (int shard : order) {
      bundles.push_back(open_bundle(shards[static_cast<size_t>(shard)]));
      const Bundle& bundle = *bundles.back();
      for (size_t i = 0; i < bundle.num_entries(); ++i) {
        const auto reread = [&bundle, i]() -> Result<Entry> {
          return Entry(*bundle.read_item(i).entry);
        };
        EXPECT_TRUE(writer.add(*bundle.read_item(i).entry, reread));
      }
    }
    EXPECT_EQ(written(writer), bundle_of(entries));
  }
}

TEST(BundleWriterTest, AnEntryThatChangedMeanwhileIsAnError) {
  Entry entry = example_entry(1);
  BundleWriter writer;
  ASSERT_TRUE(writer.add(entry, [&entry]() -> Result<Entry> { return entry; }));
  const auto drop = [](std::string_view) { return Status::ok(); };
  EXPECT_TRUE(writer.write_to(drop));
  for (Entry changed : {example_entry(2), example_entry(1, 99), example_entry(1)}) {
    changed.image.back() ^= 1;
    entry = changed;
    const Status status = writer.write_to(drop);
    EXPECT_EQ(status.code(), StatusCode::kCacheError);
    EXPECT_THAT(status.message(), HasSubstr("was changed while the bundle was written"));
  }
  BundleWriter failing;
  ASSERT_TRUE(failing.add(
      example_entry(1), []() -> Result<Entry> { return Status(StatusCode::kCacheError, "gone"); }));
  EXPECT_EQ(failing.write_to(drop).message(), "gone");
}

class BundleWriterFileTest : public testing::Test {
 protected:
  BundleWriterFileTest() {
    for (const Entry& entry : entries_) EXPECT_TRUE(writer_.add(entry));
  }

  TestDirectory directory_;
  const std::string path_ = directory_.path() / "kernels.pjb";
  const std::vector<Entry> entries_ = example_entries(5);
  const std::string bytes_ = bundle_of(entries_);
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  BundleWriter writer_{file_system_};
};

TEST_F(BundleWriterFileTest, WritesAFileThatOthersMayRead) {
  write_file(path_, "an old one", 0600);
  ASSERT_TRUE(writer_.write_file(path_));
  EXPECT_EQ(read_file(path_), bytes_);
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0644 & ~mask);
  EXPECT_EQ(list(directory_.path()).size(), 1u);
}

TEST_F(BundleWriterFileTest, APathWithoutAFolderIsInTheCurrentOne) {
  EXPECT_EQ(run_child([this] {
              if (::chdir(directory_.path().c_str()) != 0) return 1;
              return writer_.write_file("kernels.pjb") ? 0 : 2;
            }),
            0);
  EXPECT_EQ(read_file(path_), bytes_);
}

TEST_F(BundleWriterFileTest, WhatIsNoRegularFileIsNotReplaced) {
  fs::create_directory(path_);
  EXPECT_EQ(writer_.write_file(path_).code(), StatusCode::kCacheError);
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Status status = writer_.write_file(path_);
  EXPECT_EQ(status.code(), StatusCode::kCacheError);
  EXPECT_THAT(status.message(), HasSubstr("is not a regular file"));
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(writer_.write_file(directory_.path() / "").code(), StatusCode::kCacheError);
  EXPECT_EQ(writer_.write_file(directory_.path() / "none" / "x").code(), StatusCode::kCacheError);
}

TEST_F(BundleWriterFileTest, EachFailingCallLeavesTheOldFileAlone) {
  write_file(path_, "an old one");
  ASSERT_TRUE(writer_.write_file(directory_.path() / "new"));
  const int count = file_system_->num_calls();
  fs::remove(directory_.path() / "new");
  int num_failures = 0;
  for (int i = 0; i < count; ++i) {
    file_system_->fail_at(i, ENOSPC);
    const Status status = writer_.write_file(path_);
    if (status) {  // what is asked of the old file, and closing the folder, may fail
      EXPECT_EQ(read_file(path_), bytes_);
      write_file(path_, "an old one");
    } else {
      ++num_failures;
      EXPECT_EQ(status.code(), StatusCode::kCacheError);
      EXPECT_EQ(read_file(path_), "an old one");
    }
    file_system_->fail_nothing();
    EXPECT_EQ(list(directory_.path()), std::vector<std::string>{"kernels.pjb"});
  }
  EXPECT_GE(num_failures, count - 2);
}

TEST_F(BundleWriterFileTest, SigningKeepsTheBundleAndReplacesTheSignature) {
  ASSERT_TRUE(writer_.write_file(path_));
  for (const uint8_t number : std::initializer_list<uint8_t>{1, 2}) {
    const FakeSigner signer(number);
    const auto bundle = Bundle::open_file(path_);
    ASSERT_TRUE(bundle);
    const Status status = sign_bundle(**bundle, path_, signer, file_system_.get());
    ASSERT_TRUE(status) << status.to_string();
    EXPECT_EQ(read_file(path_), signed_by(bytes_, signer));
  }
}

TEST_F(BundleWriterFileTest, ADamagedBundleIsNotSigned) {
  std::string damaged = bytes_;
  damaged[damaged.size() - 50] ^= 1;
  std::string right_digest = damaged;
  fix_digests(&right_digest, entries_.size());
  std::string wrong_digest = bytes_;
  wrong_digest.back() ^= 1;
  for (const std::string& bytes : {damaged, right_digest, wrong_digest}) {
    write_file(path_, bytes, 0644);
    const auto bundle = Bundle::open_file(path_);
    ASSERT_TRUE(bundle);
    EXPECT_EQ(sign_bundle(**bundle, path_, FakeSigner(1), file_system_.get()).code(),
              StatusCode::kDataCorrupt);
    EXPECT_EQ(read_file(path_), bytes);
  }
}

}  // namespace
}  // namespace pagejit::cache
