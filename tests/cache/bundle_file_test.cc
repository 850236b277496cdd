// Bundles in files: whose they may be, what may happen to them, and failing system calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cache/bundle.h"
#include "tests/cache/bundle_test_util.h"
#include "tests/cache/fault_file_system.h"

namespace pagejit::cache {
namespace {

using testing::HasSubstr;

class BundleFileTest : public testing::Test {
 protected:
  BundleFileTest() {
    options_.file_system = file_system_;
    options_.verifier = std::make_shared<FakeVerifier>();
    write_file(path_, bytes_, 0644);
  }

  std::unique_ptr<Bundle> open() {
    Result<std::unique_ptr<Bundle>> bundle = Bundle::open_file(path_, options_);
    EXPECT_TRUE(bundle) << bundle.status().to_string();
    return bundle ? std::move(bundle).value() : nullptr;
  }
  void expect_refused(const std::string& sentence) {
    const auto bundle = Bundle::open_file(path_, options_);
    ASSERT_FALSE(bundle);
    EXPECT_EQ(bundle.status().code(), StatusCode::kCacheError);
    EXPECT_THAT(bundle.status().message(), HasSubstr(sentence));
    EXPECT_THAT(bundle.status().message(), HasSubstr(path_));
  }
  void expect_serves(Bundle& bundle) {
    for (const Entry& entry : entries_) {
      const LookupResult found = bundle.lookup(entry.key);
      ASSERT_EQ(found.outcome, LookupOutcome::kHit) << found.status.to_string();
      EXPECT_EQ(*found.entry, entry);
    }
    EXPECT_EQ(bundle.lookup(example_entry(99).key).outcome, LookupOutcome::kMiss);
    EXPECT_TRUE(bundle.verify());
  }

  TestDirectory directory_;
  const std::string path_ = directory_.path() / "kernels.pjb";
  const std::vector<Entry> entries_ = example_entries(5);
  const std::string bytes_ = bundle_of(entries_);
  std::shared_ptr<FaultFileSystem> file_system_ = std::make_shared<FaultFileSystem>();
  BundleOptions options_;
};

TEST_F(BundleFileTest, ServesItsEntries) {
  const auto bundle = open();
  expect_serves(*bundle);
  EXPECT_EQ(bundle->description(), "bundle " + path_);
}

TEST_F(BundleFileTest, ShortAndInterruptedReadsAreWhole) {
  file_system_->max_transfer_bytes = 7;
  file_system_->interrupt_everything = true;
  expect_serves(*open());
}

TEST_F(BundleFileTest, AHitReadsOnlyItsEntry) {
  const auto bundle = open();
  const int before = file_system_->num_calls();
  EXPECT_EQ(bundle->lookup(entries_[2].key).outcome, LookupOutcome::kHit);
  EXPECT_EQ(file_system_->num_calls() - before, 1);
  EXPECT_EQ(bundle->lookup(example_entry(99).key).outcome, LookupOutcome::kMiss);
  EXPECT_EQ(file_system_->num_calls() - before, 1);  // the index is in memory
}

TEST_F(BundleFileTest, ASymbolicLinkIsFollowed) {
  const std::string target = directory_.path() / "kernels-1.pjb";
  fs::rename(path_, target);
  fs::create_symlink(target, path_);
  expect_serves(*open());
}

TEST_F(BundleFileTest, OnlyARegularFileIsOpened) {
  fs::remove(path_);
  expect_refused("No such file or directory");
  fs::create_directory(path_);
  expect_refused("must be a regular file");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused("must be a regular file");
  fs::remove(path_);
  fs::create_symlink("/dev/zero", path_);
  expect_refused("must be a regular file");
}

TEST_F(BundleFileTest, AFileThatOthersCanWriteIsRefused) {
  fs::permissions(path_, static_cast<fs::perms>(0664));
  expect_refused("is writable by its group");
  fs::permissions(path_, static_cast<fs::perms>(0646));
  expect_refused("is writable by everybody");
}

TEST_F(BundleFileTest, AFileThatOthersCanWriteCanBeLookedAt) {
  fs::permissions(path_, static_cast<fs::perms>(0666));
  options_.require_private = false;
  expect_serves(*open());
}

TEST_F(BundleFileTest, TheFileOfAnotherUserIsRefusedThatOfRootIsNot) {
  if (::geteuid() == 0) {
    file_system_->user = 12345;
    expect_serves(*open());  // root's
    ASSERT_EQ(::chown(path_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
    expect_serves(*open());  // the user's own
    file_system_->user = 54321;
    expect_refused(
        "or belong to root or to user 54321 and be writable by nobody else: it belongs "
        "to user 12345");
  } else {
    file_system_->user = ::geteuid() + 1;
    expect_refused("it belongs to user " + std::to_string(::geteuid()));
  }
}

TEST_F(BundleFileTest, SignedByATrustedKeyAnyFileWillDo) {
  const FakeSigner signer(1);
  write_file(path_, signed_by(bytes_, signer), 0666);
  expect_refused("must be signed by a trusted key");
  options_.trusted_keys = {FakeSigner(2).public_key()};
  expect_refused("must be signed by a trusted key");
  options_.trusted_keys = {signer.public_key()};
  const auto bundle = open();
  EXPECT_EQ(bundle->signature().verdict, SignatureVerdict::kTrusted);
  expect_serves(*bundle);
}

TEST_F(BundleFileTest, AFileThatIsReplacedIsServedAsItWasOpened) {
  const auto bundle = open();
  write_file(directory_.path() / "new", bundle_of(example_entries(1)));
  fs::rename(directory_.path() / "new", path_);
  expect_serves(*bundle);
  fs::remove(path_);
  expect_serves(*bundle);
}

TEST_F(BundleFileTest, AFileThatIsTruncatedWhileOpenIsCorrupt) {
  const auto bundle = open();
  for (size_t size = bytes_.size() - 33; size > 0; size /= 2) {
    ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(size)), 0);
    for (size_t i = 0; i < bundle->num_entries(); ++i) {
      const BundleItem item = bundle->item(i);
      const LookupResult found = bundle->lookup(item.key);
      if (item.offset + item.size <= size) {
        EXPECT_EQ(found.outcome, LookupOutcome::kHit);
      } else {
        EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
        EXPECT_EQ(found.corruption, Corruption::kTruncated);
        EXPECT_EQ(found.status.code(), StatusCode::kDataCorrupt);
      }
    }
    EXPECT_EQ(bundle->verify().code(), StatusCode::kDataCorrupt);
  }
}

TEST_F(BundleFileTest, AFileThatIsOverwrittenWhileOpenYieldsNoWrongBytes) {
  const auto bundle = open();
  std::vector<Entry> others = entries_;
  for (Entry& entry : others) entry.image[0] ^= 1;  // the same keys and sizes
  write_file(path_, bundle_of(others), 0644);
  for (const Entry& entry : entries_) {
    const LookupResult found = bundle->lookup(entry.key);
    EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
    EXPECT_EQ(found.corruption, Corruption::kChecksum);
  }
}

TEST_F(BundleFileTest, AFileThatShrinksWhileItIsOpenedIsRefused) {
  const std::string signed_bytes = signed_by(bytes_, FakeSigner(1));
  for (const size_t size : {size_t{0}, size_t{63}, size_t{100}, bytes_.size() + 50}) {
    write_file(path_, signed_bytes, 0644);
    file_system_->before = [&](int, Call call) {
      const bool is_read = call == Call::kReadAt;
      return is_read ? ::truncate(path_.c_str(), static_cast<off_t>(size)) : 0;
    };
    const auto bundle = Bundle::open_file(path_, options_);
    ASSERT_FALSE(bundle) << size;
    EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  }
}

TEST_F(BundleFileTest, EachFailingCallIsAnErrorOfOpening) {
  write_file(path_, signed_by(bytes_, FakeSigner(1)), 0644);
  const int num_files = static_cast<int>(num_open_files());
  const int begin = file_system_->num_calls();
  { open(); }
  const int count = file_system_->num_calls() - begin - 1;  // but for the close
  EXPECT_EQ(count, 5);                                      // open, stat, header, index, signature
  for (int i = 0; i < count; ++i) {
    for (int error : {EIO, ESTALE, EACCES, EMFILE}) {
      file_system_->fail_at(i, error);
      expect_refused("");
    }
  }
  EXPECT_EQ(static_cast<int>(num_open_files()), num_files);
}

TEST_F(BundleFileTest, AFailingReadIsAMissWithAReason) {
  const auto bundle = open();
  for (int error : {EIO, ESTALE}) {
    file_system_->fail_every(Call::kReadAt, error);
    for (const LookupResult& found :
         {bundle->lookup(entries_[0].key),
          bundle->lookup_any_compiler(entries_[0].key.source,
                                      [](const Entry&, const Entry&) { return false; })}) {
      EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
      EXPECT_EQ(found.status.code(), StatusCode::kCacheError);
    }
    EXPECT_EQ(bundle->verify().code(), StatusCode::kCacheError);
  }
  file_system_->fail_nothing();
  expect_serves(*bundle);
}

TEST_F(BundleFileTest, AHugeSparseFileOfZerosIsRefusedAtOnce) {
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  if (::truncate(path_.c_str(), off_t{1} << 40) != 0) {
    ASSERT_EQ(errno, EFBIG) << std::strerror(errno);
    GTEST_SKIP() << "the file system has no such large files";
  }
  const auto bundle = Bundle::open_file(path_, options_);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
}

TEST_F(BundleFileTest, AnItemLargerThanAnyEntryIsRefusedBeforeItIsRead) {
  const uint64_t size = 64 + 112 + kMaxEntryBytes + 1 + 32;
  std::string bytes = bundle_of({entries_[0]}).substr(0, 64 + 112);
  put(&bytes, 24, size);
  put(&bytes, 64 + 72, kMaxEntryBytes + 1);
  const std::string_view view = bytes;
  const Digest digest = sha256({view.substr(0, 32), view.substr(64)});
  bytes.replace(32, 32, as_bytes(digest));
  write_file(path_, bytes, 0644);
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(size)), 0);  // sparse
  const auto bundle = Bundle::open_file(path_, options_);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(bundle.status().message(), HasSubstr("has size 268435457"));
}

TEST_F(BundleFileTest, MoreEntriesThanAnyBundleHasAreRefusedBeforeTheIndexIsRead) {
  const uint64_t count = kMaxBundleEntries + 1;
  const uint64_t size = 400 * count;  // large enough for them all; sparse
  std::string header = bytes_.substr(0, 64);
  put(&header, 16, count);
  put(&header, 24, size);
  write_file(path_, header, 0644);
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(size)), 0);
  const int before = file_system_->num_calls();
  const auto bundle = Bundle::open_file(path_, options_);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(bundle.status().message(), HasSubstr("claims 1048577 entries"));
  EXPECT_EQ(file_system_->num_calls() - before, 4);  // open, stat, read the header, close
}

}  // namespace
}  // namespace pagejit::cache
