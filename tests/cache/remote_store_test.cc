#include "cache/remote_store.h"

#include <gmock/gmock.h>

#include "tests/cache/remote_store_fixture.h"

namespace pagejit::cache {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(RemoteStoreTest, LookupFindsTheEntryInEachLayout) {
  for (const RemoteLayout layout :
       {RemoteLayout::kFlat, RemoteLayout::kSubdirectories, RemoteLayout::kBazel}) {
    options_.layout = layout;
    transport_->put(url_of(entry_.key), bytes_);
    RemoteStore store(options_);
    const LookupResult found = store.lookup(entry_.key);
    ASSERT_EQ(found.outcome, LookupOutcome::kHit);
    EXPECT_EQ(*found.entry, entry_);
    EXPECT_TRUE(found.status);
    EXPECT_EQ(store.stats().hits, 1);
  }
  EXPECT_THAT(transport_->files(), SizeIs(3));
}

TEST_F(RemoteStoreTest, RequestsCarryTheLimits) {
  store().lookup(entry_.key);
  ASSERT_THAT(transport_->sent(), SizeIs(1));
  const HttpRequest request = transport_->sent()[0].request;
  EXPECT_EQ(request.method, HttpMethod::kGet);
  EXPECT_EQ(request.connect_timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(request.total_timeout, seconds(2));
  EXPECT_EQ(request.max_body_bytes, size_t{16} << 20);
}

TEST_F(RemoteStoreTest, NotFoundAndGoneArePlainMisses) {
  for (const int status : {404, 410}) {
    transport_->script = [=](const HttpRequest&) { return answer_with(status); };
    const LookupResult found = store().lookup(entry_.key);
    EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
    EXPECT_TRUE(found.status);
  }
  EXPECT_EQ(store().stats().misses, 2);
  EXPECT_THAT(store().stats().statuses, IsEmpty());
}

TEST_F(RemoteStoreTest, OtherStatusesAreMissesWithAReasonAndNoTrouble) {
  for (const int status : {204, 206, 301, 400, 401, 403, 405, 418}) {
    transport_->script = [=, this](const HttpRequest&) { return answer_with(status, bytes_); };
    const LookupResult found = store().lookup(entry_.key);
    EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
    EXPECT_THAT(found.status.message(),
                HasSubstr("remote http://h/p answers with status " + std::to_string(status)));
    EXPECT_EQ(store().stats().statuses[status], 1);
  }
  EXPECT_FALSE(store().stats().lookup_breaker.is_open);
}

TEST_F(RemoteStoreTest, AnswerTruncatedAtAnyByteIsCorrupt) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const LookupResult found = lookup_answered_by(entry_.key, bytes_.substr(0, size));
    ASSERT_EQ(found.outcome, LookupOutcome::kCorrupt) << size;
    ASSERT_EQ(found.entry, nullptr);
    ASSERT_EQ(found.corruption, Corruption::kTruncated) << size;
    ASSERT_EQ(found.status.code(), StatusCode::kDataCorrupt);
  }
  EXPECT_EQ(corrupt(Corruption::kTruncated), bytes_.size());
  EXPECT_EQ(store().stats().corrupt_total(), bytes_.size());
  EXPECT_FALSE(store().stats().lookup_breaker.is_open);
}

TEST_F(RemoteStoreTest, AnswerWithAFlippedBitAtAnyByteIsCorrupt) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    std::string bytes = bytes_;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    const LookupResult found = lookup_answered_by(entry_.key, bytes);
    ASSERT_EQ(found.outcome, LookupOutcome::kCorrupt) << i;
    ASSERT_EQ(found.entry, nullptr);
  }
  EXPECT_EQ(store().stats().corrupt_total(), bytes_.size());
  EXPECT_GT(corrupt(Corruption::kChecksum), 0);
  EXPECT_GT(corrupt(Corruption::kMagic), 0);
}

TEST_F(RemoteStoreTest, AnEntryOfAnotherKeyIsCorrupt) {
  EXPECT_EQ(lookup_answered_by(entry_.key, *encode_entry(example_entry(2))).corruption,
            Corruption::kWrongKey);
  // The file name holds only a part of C.
  Entry other_compiler = entry_;
  other_compiler.key.compiler.back() ^= 1;
  EXPECT_EQ(lookup_answered_by(entry_.key, *encode_entry(other_compiler)).corruption,
            Corruption::kWrongKey);
  EXPECT_EQ(corrupt(Corruption::kWrongKey), 2);
}

TEST_F(RemoteStoreTest, GarbageAfterTheEntryAndOtherPagesAreCorrupt) {
  EXPECT_EQ(lookup_answered_by(entry_.key, bytes_ + "x").corruption, Corruption::kTrailingBytes);
  const std::string page = "<html>" + std::string(200, ' ') + "please log in</html>";
  EXPECT_EQ(lookup_answered_by(entry_.key, page).corruption, Corruption::kMagic);
  EXPECT_EQ(lookup_answered_by(entry_.key, "").corruption, Corruption::kTruncated);
}

TEST_F(RemoteStoreTest, AnAnswerThatIsTooLargeIsCorruptAndNoTrouble) {
  options_.max_answer_bytes = bytes_.size() - 1;
  for (int i = 0; i < 4; ++i) {
    const LookupResult found = lookup_answered_by(entry_.key, bytes_);
    EXPECT_EQ(found.outcome, LookupOutcome::kCorrupt);
    EXPECT_EQ(found.corruption, Corruption::kLength);
  }
  EXPECT_FALSE(store().stats().lookup_breaker.is_open);
  EXPECT_EQ(failures(HttpFailure::kTooLarge), 4);
}

TEST_F(RemoteStoreTest, OnlyAnswersWhoseSignatureIsGoodAreTaken) {
  options_.check_signature = [](std::string_view answer) -> Result<std::string_view> {
    if (!answer.ends_with("signed")) return Status(StatusCode::kDataCorrupt, "not signed");
    answer.remove_suffix(6);
    return answer;
  };
  const LookupResult unsigned_one = lookup_answered_by(entry_.key, bytes_);
  EXPECT_EQ(unsigned_one.outcome, LookupOutcome::kMiss);
  EXPECT_THAT(unsigned_one.status.message(), HasSubstr("not signed"));
  EXPECT_EQ(store().stats().distrusted, 1);
  EXPECT_EQ(lookup_answered_by(entry_.key, bytes_ + "signed").outcome, LookupOutcome::kHit);
  // What is signed must still be the entry.
  EXPECT_EQ(lookup_answered_by(entry_.key, bytes_.substr(1) + "signed").outcome,
            LookupOutcome::kCorrupt);
}

TEST_F(RemoteStoreTest, AServerThatFailsIsLeftAloneAndTriedAgain) {
  int requests = 0;
  bool works = false;
  transport_->script = [&](const HttpRequest& request) {
    ++requests;
    return works ? transport_->serve(request) : answer_failed(HttpFailure::kTimeout);
  };
  for (int i = 0; i < 10; ++i) {
    const LookupResult found = store().lookup(entry_.key);
    EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
    EXPECT_EQ(found.status.code(), StatusCode::kCacheError);
  }
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(store().stats().misses, 10);
  EXPECT_EQ(failures(HttpFailure::kTimeout), 3);
  EXPECT_EQ(store().stats().lookup_breaker.refused, 7);
  EXPECT_TRUE(store().stats().lookup_breaker.is_open);
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0], HasSubstr("remote http://h/p: timeout"));
  EXPECT_THAT(warnings_[0], Not(HasSubstr("secret")));

  now_ += seconds(5);
  works = true;
  transport_->put(url_of(entry_.key), bytes_);
  EXPECT_EQ(store().lookup(entry_.key).outcome, LookupOutcome::kHit);
  EXPECT_EQ(requests, 4);
  EXPECT_FALSE(store().stats().lookup_breaker.is_open);
  EXPECT_THAT(warnings_, SizeIs(1));
}

TEST_F(RemoteStoreTest, StatusesThatTellOfTroubleCountAsFailures) {
  for (const int status : {408, 429, 500, 503, 507}) {
    RemoteStore store(options_);
    transport_->script = [=](const HttpRequest&) { return answer_with(status); };
    for (int i = 0; i < 3; ++i) store.lookup(entry_.key);
    EXPECT_TRUE(store.stats().lookup_breaker.is_open) << status;
    EXPECT_EQ(store.stats().statuses[status], 3);
  }
}

TEST_F(RemoteStoreTest, AnUnavailableTransportIsAskedOnceAndSaidOnce) {
  transport_->script = [](const HttpRequest&) { return answer_failed(HttpFailure::kUnavailable); };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(store().lookup(entry_.key).outcome, LookupOutcome::kMiss);
    now_ += seconds(1000);
  }
  EXPECT_THAT(transport_->sent(), SizeIs(1));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("unavailable")));
}

TEST_F(RemoteStoreTest, WithoutACompilerTheGivenOnesAreAsked) {
  std::vector<Entry> entries(3, entry_);
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].key.compiler.fill(static_cast<uint8_t>(i));
    entries[i].metadata = std::to_string(i == 1 ? 9 : i);
    transport_->put(url_of(entries[i].key), *encode_entry(entries[i]));
    options_.compilers.push_back(entries[i].key.compiler);
  }
  options_.compilers.push_back(example_entry(7).key.source);  // of which the server has nothing
  const auto newer = [](const Entry& a, const Entry& b) { return a.metadata > b.metadata; };
  const LookupResult found = store().lookup_any_compiler(entry_.key.source, newer);
  ASSERT_EQ(found.outcome, LookupOutcome::kHit);
  EXPECT_EQ(*found.entry, entries[1]);
  EXPECT_THAT(transport_->sent(), SizeIs(4));
}

TEST_F(RemoteStoreTest, WithoutKnownCompilersNothingIsAsked) {
  const LookupResult found = store().lookup_any_compiler(entry_.key.source, nullptr);
  EXPECT_EQ(found.outcome, LookupOutcome::kMiss);
  EXPECT_TRUE(found.status);
  EXPECT_THAT(transport_->sent(), IsEmpty());
}

TEST_F(RemoteStoreTest, NoMessageHasThePassword) {
  EXPECT_EQ(store().description(), "remote http://h/p");
  std::vector<LookupResult> results;
  transport_->script = [](const HttpRequest&) { return answer_with(403); };
  results.push_back(store().lookup(entry_.key));
  transport_->script = nullptr;
  results.push_back(lookup_answered_by(entry_.key, "garbage"));
  transport_->script = [](const HttpRequest&) { return answer_failed(HttpFailure::kConnect); };
  for (int i = 0; i < 4; ++i) results.push_back(store().lookup(entry_.key));
  for (const LookupResult& result : results) {
    EXPECT_THAT(result.status.message(), HasSubstr("remote http://h/p"));
    EXPECT_THAT(result.status.message(), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace pagejit::cache
