// What the tests of RemoteStore share: a store over a scripted transport, with a clock that stands
// still. Thread-safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/remote_store.h"
#include "tests/cache/cache_test_util.h"
#include "tests/cache/child_process.h"
#include "tests/cache/scripted_transport.h"

namespace pagejit::cache {

class RemoteStoreTest : public testing::Test {
 protected:
  RemoteStoreTest() {
    options_.url = *parse_remote_url("http://user:secret@h/p");
    options_.transport = transport_;
    options_.breaker.clock = [this] { return now_; };
    options_.on_warning = [this](const Status& status) { warnings_.push_back(status.message()); };
  }

  RemoteStore& store() {
    if (store_ == nullptr) store_ = std::make_unique<RemoteStore>(options_);
    return *store_;
  }
  std::string url_of(const Key& key) const { return options_.url.of_entry(key, options_.layout); }
  // The server has these bytes where the entry of `key` would lie.
  LookupResult lookup_answered_by(const Key& key, std::string bytes) {
    transport_->put(url_of(key), std::move(bytes));
    return store().lookup(key);
  }
  uint64_t corrupt(Corruption kind) { return store().stats().corrupt[static_cast<size_t>(kind)]; }
  uint64_t failures(HttpFailure failure) {
    return store().stats().failures[static_cast<size_t>(failure)];
  }

  const Entry entry_ = example_entry(1);
  const std::string bytes_ = *encode_entry(entry_);
  const std::shared_ptr<ScriptedTransport> transport_ = std::make_shared<ScriptedTransport>();
  std::chrono::steady_clock::time_point now_{};
  std::vector<std::string> warnings_;
  RemoteStoreOptions options_;

 private:
  std::unique_ptr<RemoteStore> store_;  // the first to go
};

}  // namespace pagejit::cache
