#include "cache/disk_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <set>

#include "tests/cache/cache_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

class DiskCacheTest : public testing::Test {
 protected:
  fs::path path_of(const Entry& entry) const { return entry_path(directory_.cache(), entry.key); }
  void publish(const Entry& entry) {
    const Status status = cache_->publish(entry);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
  }
  void expect_hit(const Entry& entry) {
    const LookupResult result = cache_->lookup(entry.key);
    ASSERT_EQ(result.outcome, LookupOutcome::kHit) << result.status.to_string();
    EXPECT_EQ(*result.entry, entry);
    EXPECT_TRUE(result.status.is_ok());
  }
  void expect_miss(const Key& key) {
    const LookupResult result = cache_->lookup(key);
    EXPECT_EQ(result.outcome, LookupOutcome::kMiss);
    EXPECT_EQ(result.entry, nullptr);
  }
  // The entry is corrupt, counted as such, moved away, and the next publish heals it.
  void expect_corrupt_then_healed(const Entry& entry, Corruption corruption) {
    const uint64_t before = cache_->stats().corrupt[static_cast<size_t>(corruption)];
    const LookupResult result = cache_->lookup(entry.key);
    ASSERT_EQ(result.outcome, LookupOutcome::kCorrupt) << result.status.to_string();
    EXPECT_EQ(result.corruption, corruption) << result.status.to_string();
    EXPECT_EQ(result.status.code(), StatusCode::kDataCorrupt);
    EXPECT_EQ(result.entry, nullptr);
    EXPECT_EQ(cache_->stats().corrupt[static_cast<size_t>(corruption)], before + 1);
    expect_miss(entry.key);
    publish(entry);
    expect_hit(entry);
  }

  TestDirectory directory_;
  std::unique_ptr<DiskCache> cache_ = open_cache(directory_.cache());
  const Entry entry_ = example_entry(1);
};

TEST_F(DiskCacheTest, AnEmptyCacheMissesAndMakesNothing) {
  expect_miss(entry_.key);
  EXPECT_FALSE(fs::exists(directory_.cache()));
  EXPECT_EQ(cache_->stats().misses, 1u);
  EXPECT_TRUE(cache_->stats().lookup_failures.empty());
}

TEST_F(DiskCacheTest, WhatIsPublishedIsFoundAlsoByAnotherCache) {
  publish(entry_);
  expect_hit(entry_);
  cache_ = open_cache(directory_.cache() + "/");
  expect_hit(entry_);
  EXPECT_EQ(cache_->stats().hits, 1u);
  expect_miss(example_entry(2).key);
}

TEST_F(DiskCacheTest, TheLayoutIsAsDocumented) {
  publish(entry_);
  const fs::path v1 = fs::path(directory_.cache()) / "v1";
  EXPECT_EQ(read_file(path_of(entry_)), encode_entry(entry_).value());
  EXPECT_TRUE(list(v1 / "tmp").empty());
  EXPECT_TRUE(
      read_file(v1 / "CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  EXPECT_EQ(list(directory_.cache()), std::vector<std::string>{"v1"});
}

TEST_F(DiskCacheTest, EverythingIsForTheOwnerAloneWhateverTheUmask) {
  for (const mode_t mask : {0, 077}) {
    fs::remove_all(directory_.cache());
    const mode_t before = ::umask(mask);
    publish(entry_);
    write_file(path_of(entry_), "bad");
    EXPECT_EQ(cache_->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);  // makes v1/bad
    publish(entry_);
    ::umask(before);
    int num_files = 0;
    for (const auto& item : fs::recursive_directory_iterator(directory_.cache())) {
      struct stat info;
      ASSERT_EQ(::lstat(item.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 07777, item.is_directory() ? 0700u : 0600u) << item.path();
      ++num_files;
    }
    EXPECT_GT(num_files, 6);
    expect_hit(entry_);
  }
}

TEST_F(DiskCacheTest, PublishingAgainReplaces) {
  publish(entry_);
  Entry newer = entry_;
  newer.image = "newer";
  publish(newer);
  expect_hit(newer);
}

TEST_F(DiskCacheTest, LookupAfterTruncatedEntryIsCorruptAtEveryByte) {
  const std::string bytes = encode_entry(entry_).value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    publish(entry_);
    write_file(path_of(entry_), bytes.substr(0, size));
    ASSERT_EQ(cache_->lookup(entry_.key).corruption, Corruption::kTruncated);
    expect_miss(entry_.key);
  }
  EXPECT_EQ(cache_->stats().corrupt[static_cast<size_t>(Corruption::kTruncated)], bytes.size());
  EXPECT_EQ(cache_->stats().corrupt_total(), bytes.size());
  publish(entry_);
  expect_hit(entry_);
}

TEST_F(DiskCacheTest, LookupAfterAFlippedBitIsCorruptAtEveryByte) {
  const std::string bytes = encode_entry(entry_).value();
  publish(entry_);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    write_file(path_of(entry_), damaged);
    ASSERT_EQ(cache_->lookup(entry_.key).outcome, LookupOutcome::kCorrupt) << i;
  }
  EXPECT_EQ(cache_->stats().corrupt_total(), bytes.size());
  publish(entry_);
  expect_hit(entry_);
}

TEST_F(DiskCacheTest, TwoSwappedEntriesAreBothCorrupt) {
  const Entry other = example_entry(2);
  publish(entry_);
  publish(other);
  write_file(path_of(entry_), encode_entry(other).value());
  write_file(path_of(other), encode_entry(entry_).value());
  expect_corrupt_then_healed(entry_, Corruption::kWrongKey);
  expect_corrupt_then_healed(other, Corruption::kWrongKey);
}

TEST_F(DiskCacheTest, AppendedGarbageIsCorrupt) {
  publish(entry_);
  write_file(path_of(entry_), encode_entry(entry_).value() + "x");
  expect_corrupt_then_healed(entry_, Corruption::kTrailingBytes);
}

TEST_F(DiskCacheTest, AFileLargerThanAnyEntryIsCorruptAndNotRead) {
  const auto file_system = std::make_shared<FaultFileSystem>();
  cache_ = open_cache(directory_.cache(), file_system);
  publish(entry_);
  file_system->fail_every(Call::kRead, EIO);
  ASSERT_EQ(::truncate(path_of(entry_).c_str(), static_cast<off_t>(kMaxEntryBytes) + 1), 0);
  EXPECT_EQ(cache_->lookup(entry_.key).corruption, Corruption::kLength);
  file_system->fail_nothing();
  expect_miss(entry_.key);
}

TEST_F(DiskCacheTest, WhatIsNotAPrivateFileIsCorrupt) {
  publish(entry_);
  const fs::path path = path_of(entry_);
  const auto replaced_by = [&](const std::function<void()>& make) {
    fs::remove(path);
    make();
    expect_corrupt_then_healed(entry_, Corruption::kNotPrivateFile);
  };
  write_file(directory_.path() / "target", encode_entry(entry_).value());
  replaced_by([&] { fs::create_symlink(directory_.path() / "target", path); });
  EXPECT_TRUE(fs::exists(directory_.path() / "target"));
  replaced_by([&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); });
  replaced_by([&] { fs::create_directory(path); });
  replaced_by([&] { write_file(path, encode_entry(entry_).value(), 0660); });
  replaced_by([&] { write_file(path, encode_entry(entry_).value(), 0602); });
  if (::geteuid() == 0) {
    replaced_by([&] {
      write_file(path, encode_entry(entry_).value());
      ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    });
  }
}

TEST_F(DiskCacheTest, AtMostSixteenEntriesAreSetAside) {
  std::set<char> slots;
  for (int i = 0; i < 60; ++i) {
    const Entry entry = example_entry(i);
    slots.insert(to_hex(entry.key.source).back());
    publish(entry);
    write_file(path_of(entry), "bad " + std::to_string(i));
    EXPECT_EQ(cache_->lookup(entry.key).outcome, LookupOutcome::kCorrupt);
  }
  const auto bad = list(fs::path(directory_.cache()) / "v1" / "bad");
  EXPECT_EQ(bad.size(), slots.size());
  EXPECT_LE(bad.size(), 16u);
  EXPECT_EQ(cache_->stats().quarantine_failures, 0u);
}

TEST_F(DiskCacheTest, ACorruptEntryIsKeptForInspection) {
  publish(entry_);
  write_file(path_of(entry_), "evidence");
  EXPECT_EQ(cache_->lookup(entry_.key).outcome, LookupOutcome::kCorrupt);
  const std::string slot = to_hex(entry_.key.source).substr(63) + ".pjk";
  EXPECT_EQ(read_file(fs::path(directory_.cache()) / "v1" / "bad" / slot), "evidence");
}

TEST_F(DiskCacheTest, ARejectedEntryIsSetAsideAndCounted) {
  publish(entry_);
  cache_->reject(entry_);
  expect_miss(entry_.key);
  EXPECT_EQ(cache_->stats().rejected, 1u);
  EXPECT_EQ(cache_->stats().corrupt_total(), 0u);
  cache_->reject(entry_);  // nothing there: nothing happens
  publish(entry_);
  expect_hit(entry_);
}

TEST_F(DiskCacheTest, WhatReplacedARejectedEntryStays) {
  publish(entry_);
  Entry newer = entry_;
  newer.image = "published by another process since the look-up";
  publish(newer);
  cache_->reject(entry_);
  expect_hit(newer);
  newer = entry_;
  newer.metadata = "the same image, described otherwise";
  publish(newer);
  cache_->reject(entry_);
  expect_hit(newer);
  EXPECT_EQ(cache_->stats().rejected, 2u);
  EXPECT_EQ(cache_->stats().quarantine_failures, 0u);
}

TEST_F(DiskCacheTest, RejectingWhatIsNoLongerAnEntryDoesNothing) {
  publish(entry_);
  const std::string bytes = encode_entry(entry_).value();
  for (const std::string& other : {std::string(), std::string("x"), bytes.substr(0, 127)}) {
    write_file(path_of(entry_), other);
    cache_->reject(entry_);
    EXPECT_EQ(read_file(path_of(entry_)), other);
  }
  fs::remove(path_of(entry_));
  ASSERT_EQ(::mkfifo(path_of(entry_).c_str(), 0600), 0);
  cache_->reject(entry_);
  EXPECT_TRUE(fs::exists(path_of(entry_)));
}

TEST_F(DiskCacheTest, AnOversizedEntryIsRefusedAndNothingIsWritten) {
  Entry large = entry_;
  large.image.resize(kMaxEntryBytes);
  EXPECT_EQ(cache_->publish(large).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(directory_.cache()));
}

TEST_F(DiskCacheTest, AnyCompilerFindsTheBestValidEntryWhateverTheFilesTimes) {
  std::vector<Entry> entries;
  for (int i = 0; i < 3; ++i) {
    Entry entry = entry_;
    entry.key.compiler = sha256({"compiler " + std::to_string(i)});
    entry.metadata = std::to_string(i);
    publish(entry);
    const struct timespec times[2] = {{1000 - i, 0}, {1000 - i, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path_of(entry).c_str(), times, 0), 0);
    entries.push_back(entry);
  }
  publish(example_entry(2));
  write_file(path_of(entry_).parent_path() / ".nfs000000000001", "left by NFS");
  const auto find = [&] {
    return cache_->lookup_any_compiler(
        entry_.key.source, [](const Entry& a, const Entry& b) { return a.metadata > b.metadata; });
  };
  ASSERT_EQ(find().outcome, LookupOutcome::kHit);
  EXPECT_EQ(*find().entry, entries[2]);
  write_file(path_of(entries[2]), "bad");
  ASSERT_EQ(find().outcome, LookupOutcome::kHit);
  EXPECT_EQ(*find().entry, entries[1]);
  EXPECT_EQ(cache_->stats().corrupt_total(), 1u);
  fs::remove(path_of(entries[1]));
  write_file(path_of(entries[0]), encode_entry(entries[1]).value());
  EXPECT_EQ(find().outcome, LookupOutcome::kCorrupt);
  EXPECT_EQ(find().outcome, LookupOutcome::kMiss);
  EXPECT_EQ(cache_->lookup_any_compiler(Digest{}, nullptr).outcome, LookupOutcome::kMiss);
}

TEST_F(DiskCacheTest, OfEquallyGoodEntriesTheSmallerNameIsTaken) {
  std::string smallest;
  for (int i = 0; i < 5; ++i) {
    Entry entry = entry_;
    entry.key.compiler = sha256({"compiler " + std::to_string(i)});
    publish(entry);
    if (smallest.empty() || entry.key.file_name() < smallest) smallest = entry.key.file_name();
  }
  const auto never = [](const Entry&, const Entry&) { return false; };
  EXPECT_EQ(cache_->lookup_any_compiler(entry_.key.source, never).entry->key.file_name(), smallest);
  EXPECT_EQ(cache_->lookup_any_compiler(entry_.key.source, nullptr).entry->key.file_name(),
            smallest);
}

TEST_F(DiskCacheTest, AFileIsLookedUpByItsName) {
  publish(entry_);
  const LookupResult found = cache_->lookup_file(entry_.key.file_name());
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(*found.entry, entry_);
  for (const std::string& name : {std::string(), std::string("x"), entry_.key.name(),
                                  "../" + entry_.key.file_name(), std::string(77, '/')}) {
    EXPECT_EQ(cache_->lookup_file(name).outcome, LookupOutcome::kMiss) << name;
  }
}

TEST_F(DiskCacheTest, TheDirectoryMayBeRemovedAtAnyTime) {
  publish(entry_);
  fs::remove_all(directory_.cache());
  expect_miss(entry_.key);
  publish(entry_);
  expect_hit(entry_);
  fs::remove_all(directory_.cache() + "/v1/tmp");
  fs::remove_all(directory_.cache() + "/v1/objects");
  publish(entry_);
  expect_hit(entry_);
}

TEST_F(DiskCacheTest, NoDescriptorIsLeaked) {
  const size_t before = num_open_files();
  publish(entry_);
  expect_hit(entry_);
  expect_miss(example_entry(2).key);
  write_file(path_of(entry_), "bad");
  expect_corrupt_then_healed(entry_, Corruption::kTruncated);
  EXPECT_EQ(cache_->lookup_any_compiler(entry_.key.source, nullptr).outcome, LookupOutcome::kHit);
  cache_->reject(entry_);
  EXPECT_EQ(num_open_files(), before);
}

}  // namespace
}  // namespace pagejit::cache
