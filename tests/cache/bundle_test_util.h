// What the tests of bundles share: bundles as strings, digests made right after damage, and a
// signer without cryptography. Thread-safety: one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle.h"
#include "cache/bundle_writer.h"
#include "cache/little_endian.h"
#include "cache/signature.h"
#include "tests/cache/cache_test_util.h"

namespace pagejit::cache {

inline std::string written(const BundleWriter& writer) {
  std::string bytes;
  const Status status = writer.write_to([&](std::string_view piece) {
    bytes += piece;
    return Status::ok();
  });
  EXPECT_TRUE(status) << status.to_string();
  return bytes;
}

inline std::string bundle_of(const std::vector<Entry>& entries) {
  BundleWriter writer;
  for (const Entry& entry : entries) {
    const Status status = writer.add(entry);
    EXPECT_TRUE(status) << status.to_string();
  }
  return written(writer);
}

inline std::vector<Entry> example_entries(int count, size_t image_bytes = 100) {
  std::vector<Entry> entries;
  for (int i = 0; i < count; ++i) entries.push_back(example_entry(i, image_bytes));
  return entries;
}

inline void put(std::string* bytes, size_t offset, uint64_t value, size_t num_bytes = 8) {
  std::string field;
  append_little_endian(&field, value, num_bytes);
  bytes->replace(offset, num_bytes, field);
}

// As the grammar says, so that only the field under test is wrong. `count` is the true number of
// entries.
inline void fix_digests(std::string* bytes, size_t count) {
  const std::string_view view = *bytes;
  const Digest digest =
      sha256({view.substr(0, 32), view.substr(kBundleHeaderBytes, count * kBundleIndexItemBytes)});
  bytes->replace(32, 32, as_bytes(digest));
  const Digest closing = sha256({std::string_view(*bytes).substr(0, bytes->size() - 32)});
  bytes->replace(bytes->size() - 32, 32, as_bytes(closing));
}

inline std::unique_ptr<Bundle> open_bundle(std::string_view bytes,
                                           const BundleOptions& options = {}) {
  Result<std::unique_ptr<Bundle>> bundle = Bundle::open_memory(bytes, options);
  EXPECT_TRUE(bundle) << bundle.status().to_string();
  return bundle ? std::move(bundle).value() : nullptr;
}

inline void expect_refused(const std::string& bytes, const std::string& sentence,
                           const BundleOptions& options = {}) {
  const auto bundle = Bundle::open_memory(bytes, options);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.status().code(), StatusCode::kDataCorrupt);
  EXPECT_THAT(bundle.status().message(), testing::HasSubstr(sentence));
}

// "Signs" with digests, for whoever knows the public key: enough to see what is signed and when it
// is looked at.
class FakeSigner final : public Signer {
 public:
  explicit FakeSigner(uint8_t number) { key_.fill(number); }
  const PublicKey& public_key() const override { return key_; }
  Result<Signature> sign(std::string_view message) const override {
    return signature(message, key_);
  }

  static Signature signature(std::string_view message, const PublicKey& key) {
    const Digest a = sha256({"a", as_bytes(key), message});
    const Digest b = sha256({"b", as_bytes(key), message});
    Signature signature;
    std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), signature.begin()));
    return signature;
  }

 private:
  PublicKey key_;
};

class FakeVerifier final : public SignatureVerifier {
 public:
  Status verify(std::string_view message, const PublicKey& key,
                const Signature& signature) const override {
    if (signature == FakeSigner::signature(message, key)) return Status::ok();
    return Status(StatusCode::kDataCorrupt, "the signature is wrong");
  }
};

inline std::string signed_by(const std::string& bundle, const Signer& signer) {
  return bundle + make_signature_block(bundle_message(digest_at(bundle, 32)), signer).value();
}

}  // namespace pagejit::cache
