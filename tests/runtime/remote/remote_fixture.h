// What the tests of the remote share: stores over libcurl, entries, and the bound on time.
// Thread-safety: one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cache/remote_store.h"
#include "runtime/optional/curl_transport.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"

namespace pagejit {

using cache::Corruption;
using cache::encode_entry;
using cache::Entry;
using cache::example_entry;
using cache::HttpFailure;
using cache::kSoon;
using cache::LookupOutcome;
using cache::LookupResult;
using cache::RemoteStore;
using cache::RemoteStoreOptions;
using cache::RemoteStoreStats;

// The limit of a whole transfer and a second and a half for a busy machine: less than two limits.
inline constexpr std::chrono::milliseconds kTransferBound{3'500};

inline RemoteStoreOptions options_for(const std::string& url) {
  RemoteStoreOptions options;
  options.url = *cache::parse_remote_url(url);
  options.transport = std::make_shared<CurlTransport>();
  options.connect_timeout = options.total_timeout;  // a busy machine shall not be what fails
  options.write = true;
  return options;
}

inline uint64_t failures(const RemoteStore& store, HttpFailure failure) {
  return store.stats().failures[static_cast<size_t>(failure)];
}

inline uint64_t corrupt(const RemoteStore& store, Corruption kind) {
  return store.stats().corrupt[static_cast<size_t>(kind)];
}

// More than the buffers of two sockets hold.
inline Entry large_entry() {
  Entry entry = example_entry(1000);
  entry.image.assign(12'000'000, 'x');
  return entry;
}

// Looks up within the bound.
inline LookupResult lookup_in_time(RemoteStore& store, const cache::Key& key) {
  const auto begin = std::chrono::steady_clock::now();
  LookupResult found = store.lookup(key);
  EXPECT_LE(std::chrono::steady_clock::now() - begin, kTransferBound);
  return found;
}

// Uploads within the bound of its two requests.
inline void upload_in_time(RemoteStore& store, const Entry& entry) {
  const auto begin = std::chrono::steady_clock::now();
  store.upload(entry);
  EXPECT_TRUE(store.flush(kSoon));
  EXPECT_LE(std::chrono::steady_clock::now() - begin, 2 * kTransferBound);
}

}  // namespace pagejit
