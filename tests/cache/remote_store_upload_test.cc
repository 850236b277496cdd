#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/cache/remote_store_fixture.h"

namespace pagejit::cache {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class RemoteStoreUploadTest : public RemoteStoreTest {
 protected:
  RemoteStoreUploadTest() { options_.write = true; }
  void upload(const Entry& entry) {
    store().upload(entry);
    ASSERT_TRUE(store().flush(kSoon));
  }
};

TEST_F(RemoteStoreUploadTest, WhatOneUploadsAnotherFinds) {
  upload(entry_);
  EXPECT_EQ(store().stats().uploads, 1);
  const std::vector<ScriptedTransport::Sent> sent = transport_->sent();
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[0].method, HttpMethod::kHead);
  EXPECT_EQ(sent[1].method, HttpMethod::kPut);
  EXPECT_TRUE(sent[1].request.if_none_match);

  RemoteStore other(options_);
  const LookupResult found = other.lookup(entry_.key);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(*found.entry, entry_);
}

TEST_F(RemoteStoreUploadTest, IsReadOnlyUnlessToldOtherwise) {
  options_.write = false;
  upload(entry_);
  EXPECT_THAT(transport_->sent(), IsEmpty());
}

TEST_F(RemoteStoreUploadTest, WhatTheServerHasIsNotSent) {
  upload(entry_);
  upload(entry_);
  EXPECT_THAT(transport_->sent(), SizeIs(3));  // HEAD, PUT, HEAD
  // Another was faster, between HEAD and PUT.
  transport_->script = [this](const HttpRequest& request) {
    return request.method == HttpMethod::kHead ? answer_with(404) : transport_->serve(request);
  };
  upload(entry_);
  EXPECT_EQ(store().stats().uploads, 1);
  EXPECT_EQ(store().stats().uploads_present, 2);
  EXPECT_EQ(store().stats().upload_failures, 0);
}

TEST_F(RemoteStoreUploadTest, ADamagedEntryIsReplaced) {
  ASSERT_EQ(lookup_answered_by(entry_.key, bytes_.substr(0, 50)).outcome, LookupOutcome::kCorrupt);
  upload(entry_);
  EXPECT_EQ(transport_->files()[url_of(entry_.key)], bytes_);
  EXPECT_EQ(store().lookup(entry_.key).outcome, LookupOutcome::kHit);
  upload(entry_);  // and then no more
  EXPECT_EQ(store().stats().uploads, 1);
  EXPECT_EQ(store().stats().uploads_present, 1);
}

TEST_F(RemoteStoreUploadTest, WhatTheServerHasIsReplacedUnaskedWhereThatIsWanted) {
  options_.replace = true;
  transport_->put(url_of(entry_.key), "another entry");
  upload(entry_);
  const std::vector<ScriptedTransport::Sent> sent = transport_->sent();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].method, HttpMethod::kPut);
  EXPECT_FALSE(sent[0].request.if_none_match);
  EXPECT_EQ(transport_->files()[url_of(entry_.key)], bytes_);
  EXPECT_EQ(store().stats().uploads, 1);
}

TEST_F(RemoteStoreUploadTest, FailuresAreOnlyCountedAndLookupsGoOn) {
  transport_->put(url_of(entry_.key), bytes_);
  transport_->script = [this](const HttpRequest& request) {
    return request.method == HttpMethod::kPut ? answer_with(507) : transport_->serve(request);
  };
  for (int i = 2; i < 7; ++i) upload(example_entry(i));
  EXPECT_EQ(store().stats().upload_failures, 3);
  EXPECT_EQ(store().stats().statuses[507], 3);
  EXPECT_EQ(store().stats().upload_skips, 2);
  EXPECT_TRUE(store().stats().upload_breaker.is_open);
  EXPECT_EQ(store().lookup(entry_.key).outcome, LookupOutcome::kHit);

  now_ += seconds(5);
  transport_->script = nullptr;
  upload(example_entry(7));
  EXPECT_EQ(store().stats().uploads, 1);
  EXPECT_FALSE(store().stats().upload_breaker.is_open);
}

TEST_F(RemoteStoreUploadTest, AServerThatForbidsUploadsIsNoTrouble) {
  transport_->script = [](const HttpRequest& request) {
    return answer_with(request.method == HttpMethod::kPut ? 403 : 404);
  };
  for (int i = 0; i < 5; ++i) upload(example_entry(i));
  EXPECT_EQ(store().stats().upload_failures, 5);
  EXPECT_FALSE(store().stats().upload_breaker.is_open);
}

TEST_F(RemoteStoreUploadTest, AnOversizedQueueDropsAndUploadNeverWaits) {
  std::atomic<bool> is_open{false};
  std::atomic<int> started{0};
  transport_->script = [&](const HttpRequest& request) {
    ++started;
    while (!is_open && !*request.cancelled) std::this_thread::sleep_for(milliseconds(1));
    return transport_->serve(request);
  };
  store().upload(entry_);
  ASSERT_TRUE(wait_for([&] { return started == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) store().upload(example_entry(i + 2));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kSoon);
  EXPECT_EQ(store().stats().upload_drops, 100 - 64);
  EXPECT_EQ(store().stats().uploads_waiting, 65);
  is_open = true;
  ASSERT_TRUE(store().flush(kSoon));
  EXPECT_EQ(store().stats().uploads, 65);
}

// ---- A transfer that outlives the store ----

TEST_F(RemoteStoreUploadTest, NobodyIsWarnedOnceTheStoreHasEnded) {
  options_.breaker.max_failures = 1;
  const auto warnings = std::make_shared<std::atomic<int>>(0);
  options_.on_warning = [warnings](const Status&) { ++*warnings; };
  std::atomic<bool> has_begun{false};
  std::atomic<bool> is_open{false};
  transport_->script = [&](const HttpRequest&) {  // does not heed that it is cancelled
    has_begun = true;
    while (!is_open) std::this_thread::sleep_for(milliseconds(1));
    return answer_with(503);
  };
  auto store = std::make_unique<RemoteStore>(options_);
  options_.on_warning = nullptr;  // the store's is the only one
  store->upload(entry_);
  ASSERT_TRUE(wait_for([&] { return has_begun.load(); }));
  store.reset();
  is_open = true;
  EXPECT_TRUE(wait_for([&] { return warnings.use_count() == 1; })) << "the transfer ends too";
  EXPECT_EQ(*warnings, 0);
}

TEST_F(RemoteStoreUploadTest, TheStoreWaitsForAWarningThatIsBeingTold) {
  options_.breaker.max_failures = 1;
  std::atomic<bool> is_being_told{false};
  std::atomic<bool> is_told{false};
  options_.on_warning = [&](const Status&) {
    is_being_told = true;
    std::this_thread::sleep_for(seconds(3));  // longer than it waits for a transfer
    is_told = true;
  };
  transport_->script = [&](const HttpRequest&) { return answer_with(503); };
  auto store = std::make_unique<RemoteStore>(options_);
  store->upload(entry_);
  ASSERT_TRUE(wait_for([&] { return is_being_told.load(); }));
  store.reset();
  EXPECT_TRUE(is_told);
}

TEST_F(RemoteStoreUploadTest, AnEncodedEntryIsSentAsItIs) {
  store().upload(entry_.key, bytes_ + "signature");
  ASSERT_TRUE(store().flush(kSoon));
  EXPECT_EQ(transport_->files()[url_of(entry_.key)], bytes_ + "signature");
}

// The parent's uploading thread holds whatever it holds; a child neither waits for it nor has it.
#if !defined(__SANITIZE_THREAD__)  // does not support threads after a fork of threads
TEST_F(RemoteStoreUploadTest, AForkedChildHasAThreadAndCountsOfItsOwn) {
  std::atomic<bool> is_open{false};
  std::atomic<int> started{0};
  const pid_t parent = ::getpid();
  transport_->script = [&](const HttpRequest& request) {
    ++started;
    while (::getpid() == parent && !is_open) std::this_thread::sleep_for(milliseconds(1));
    return transport_->serve(request);
  };
  auto store = std::make_unique<RemoteStore>(options_);
  store->upload(entry_);
  store->upload(example_entry(2));
  ASSERT_TRUE(wait_for([&] { return started == 1; }));
  ChildProcess child([&] {
    if (store->stats().uploads_waiting != 0) return 1;
    store->upload(example_entry(3));
    if (!store->flush(kSoon)) return 2;
    if (store->stats().uploads != 1) return 3;
    if (store->lookup(example_entry(3).key).outcome != LookupOutcome::kHit) return 4;
    store.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  is_open = true;
  EXPECT_TRUE(store->flush(kSoon));
  EXPECT_EQ(store->stats().uploads, 2);
}
#endif

TEST_F(RemoteStoreUploadTest, AChildThatDoesNothingEndsAtOnce) {
  auto store = std::make_unique<RemoteStore>(options_);
  store->upload(entry_);
  ASSERT_TRUE(store->flush(kSoon));
  ChildProcess child([&] {
    store.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace pagejit::cache
