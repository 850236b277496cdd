#include "runtime/optional/sodium.h"

#include <dlfcn.h>
#include <string.h>

#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/loader_error.h"

namespace pagejit {
namespace {

// crypto_sign_SECRETKEYBYTES: the seed and the public key.
using SecretKey = std::array<uint8_t, 64>;

// The functions of libsodium. Once opened, the library stays in the process.
struct Sodium {
  int (*init)() = nullptr;
  int (*seed_keypair)(unsigned char* public_key, unsigned char* secret_key,
                      const unsigned char* seed) = nullptr;
  int (*sign_detached)(unsigned char* signature, unsigned long long* signature_size,
                       const unsigned char* message, unsigned long long size,
                       const unsigned char* secret_key) = nullptr;
  int (*verify_detached)(const unsigned char* signature, const unsigned char* message,
                         unsigned long long size, const unsigned char* public_key) = nullptr;
};

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

template <class Function>
bool find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

Result<Sodium> open_one(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(StatusCode::kUnsupported, loader_error());
  Sodium sodium;
  if (!find(library, "sodium_init", &sodium.init) ||
      !find(library, "crypto_sign_seed_keypair", &sodium.seed_keypair) ||
      !find(library, "crypto_sign_detached", &sodium.sign_detached) ||
      !find(library, "crypto_sign_verify_detached", &sodium.verify_detached)) {
    return Status(StatusCode::kUnsupported, loader_error());
  }
  if (sodium.init() < 0) {  // 1: another part of the program has done it before
    return Status(StatusCode::kUnsupported, name + ": sodium_init failed");
  }
  return sodium;
}

Result<Sodium> open_sodium(const std::vector<std::string>& candidates) {
  std::string tried;
  for (const std::string& name : candidates) {
    Result<Sodium> sodium = open_one(name);
    if (sodium) return sodium;
    tried += (tried.empty() ? "" : "; ") + sodium.status().message();
  }
  return Status(StatusCode::kUnsupported,
                "signatures need libsodium, which cannot be opened (Debian: apt-get install "
                "libsodium23): " +
                    tried);
}

class SodiumVerifier final : public cache::SignatureVerifier {
 public:
  explicit SodiumVerifier(std::vector<std::string> candidates)
      : candidates_(std::move(candidates)) {}

  Status verify(std::string_view message, const cache::PublicKey& key,
                const cache::Signature& signature) const override {
    std::call_once(opened_, [this] { sodium_ = open_sodium(candidates_); });
    if (!*sodium_) return sodium_->status();
    if ((*sodium_)->verify_detached(signature.data(), bytes_of(message), message.size(),
                                    key.data()) != 0) {
      return Status(StatusCode::kDataCorrupt, "the signature is wrong");
    }
    return Status::ok();
  }

 private:
  const std::vector<std::string> candidates_;
  mutable std::once_flag opened_;
  mutable std::optional<Result<Sodium>> sodium_;  // set once
};

class SodiumSigner final : public cache::Signer {
 public:
  SodiumSigner(const Sodium& sodium, const SigningSeed& seed) : sodium_(sodium) {
    sodium_.seed_keypair(public_key_.data(), secret_key_.data(), seed.data());
  }
  ~SodiumSigner() override { ::explicit_bzero(secret_key_.data(), secret_key_.size()); }

  const cache::PublicKey& public_key() const override { return public_key_; }

  Result<cache::Signature> sign(std::string_view message) const override {
    cache::Signature signature;
    if (sodium_.sign_detached(signature.data(), nullptr, bytes_of(message), message.size(),
                              secret_key_.data()) != 0) {
      return Status(StatusCode::kInternal, "libsodium: crypto_sign_detached failed");
    }
    return signature;
  }

 private:
  const Sodium sodium_;
  cache::PublicKey public_key_{};
  SecretKey secret_key_{};
};

}  // namespace

std::vector<std::string> sodium_candidates() {
  // 23: Debian 10 to 12 and Ubuntu 18.04 to 24.04; 26: later ones.
  return {"libsodium.so.23", "libsodium.so.26", "libsodium.so"};
}

std::shared_ptr<const cache::SignatureVerifier> make_sodium_verifier(
    std::vector<std::string> candidates) {
  return std::make_shared<const SodiumVerifier>(std::move(candidates));
}

Result<std::unique_ptr<cache::Signer>> make_sodium_signer(
    const SigningSeed& seed, const std::vector<std::string>& candidates) {
  const Result<Sodium> sodium = open_sodium(candidates);
  if (!sodium) return sodium.status();
  std::unique_ptr<cache::Signer> signer = std::make_unique<SodiumSigner>(*sodium, seed);
  return signer;
}

}  // namespace pagejit
