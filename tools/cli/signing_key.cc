#include "tools/cli/signing_key.h"

#include <fcntl.h>

#include <optional>

#include "cache/file_io.h"
#include "runtime/optional/sodium.h"

namespace pagejit::cli {
namespace {

// 64 digits, a line feed and one byte more, by which a larger file shows.
constexpr size_t kMaxKeyFileBytes = 66;

Status failed(int error, const std::string& path, const char* what) {
  return cache::IoStatus::failure(error, path + ": " + what).to_status();
}

}  // namespace

Result<cache::PublicKey> make_signing_key(const std::string& path) {
  cache::PosixFileSystem file_system;
  SigningSeed seed;
  if (const int result = file_system.random(seed.data(), seed.size()); result < 0) {
    return failed(-result, path, "no random numbers for it");
  }
  const Result<std::unique_ptr<cache::Signer>> signer = make_sodium_signer(seed);
  if (!signer) return signer.status();
  cache::FileDescriptor file;
  int error = cache::open_named_file(&file_system, path, O_WRONLY | O_CREAT | O_EXCL, 0600, &file);
  if (error != 0) return failed(error, path, "cannot be made");
  error = cache::write_all(&file_system, file.get(), cache::to_hex(seed) + "\n");
  if (error == 0) error = cache::sync_file(&file_system, file.get());
  if (error == 0) error = file.close();
  if (error != 0) {
    file_system.unlink_at(AT_FDCWD, path.c_str(), 0);
    return failed(error, path, "cannot be written");
  }
  return (*signer)->public_key();
}

Result<std::unique_ptr<cache::Signer>> read_signing_key(const std::string& path) {
  cache::PosixFileSystem file_system;
  cache::FileDescriptor file;
  int error =
      cache::open_named_file(&file_system, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &file);
  std::string text;
  if (error == 0) {
    error = cache::read_all(&file_system, file.get(), kMaxKeyFileBytes, kMaxKeyFileBytes, &text);
  }
  if (error != 0 && error != EFBIG) return failed(error, path, "cannot be read");
  if (text.ends_with('\n')) text.pop_back();
  const std::optional<cache::Digest> seed = cache::digest_from_hex(text);
  if (!seed) {
    return Status(StatusCode::kInvalidArgument,
                  path + ": not a key file, must hold 64 hexadecimal digits and a line feed");
  }
  return make_sodium_signer(*seed);
}

}  // namespace pagejit::cli
