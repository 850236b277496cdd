#include "cache/atomic_file.h"

#include <fcntl.h>

#include <cerrno>

#include "cache/sha256.h"

namespace pagejit::cache {

AtomicFile::~AtomicFile() {
  file_.close();
  if (!tmp_name_.empty()) file_system_->unlink_at(tmp_dir_fd_, tmp_name_.c_str(), 0);
}

IoStatus AtomicFile::create(mode_t mode) {
  // 128 random bits do not meet by chance; the few attempts are for a random source that repeats
  // itself (a cloned VM).
  static constexpr int kMaxAttempts = 4;
  int error = EEXIST;
  for (int attempt = 0; attempt < kMaxAttempts && error == EEXIST; ++attempt) {
    char random_bytes[16];
    if (const int result = file_system_->random(random_bytes, sizeof random_bytes); result < 0) {
      return IoStatus::failure(-result, "random name");
    }
    std::string name = to_hex(std::string_view(random_bytes, sizeof random_bytes)) + ".tmp";
    error = open_file(file_system_, tmp_dir_fd_, name, O_WRONLY | O_CREAT | O_EXCL, mode, &file_);
    if (error == 0) tmp_name_ = std::move(name);
  }
  return error == 0 ? IoStatus() : IoStatus::failure(error, "create temporary file");
}

IoStatus AtomicFile::write(std::string_view bytes) {
  const int error = write_all(file_system_, file_.get(), bytes);
  return error == 0 ? IoStatus() : IoStatus::failure(error, "write temporary file");
}

IoStatus AtomicFile::commit(int dir_fd, const std::string& name) {
  if (const int error = sync_file(file_system_, file_.get()); error != 0) {
    return IoStatus::failure(error, "fsync temporary file");
  }
  if (const int error = file_.close(); error != 0) {
    return IoStatus::failure(error, "close temporary file");
  }
  const int result = file_system_->rename_at(tmp_dir_fd_, tmp_name_.c_str(), dir_fd, name.c_str());
  if (result < 0) return IoStatus::failure(-result, "rename temporary file to " + name);
  tmp_name_.clear();
  return IoStatus();
}

}  // namespace pagejit::cache
