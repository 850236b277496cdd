#include "cache/bundle_writer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "cache/atomic_file.h"
#include "cache/little_endian.h"

namespace pagejit::cache {
namespace {

// Publishes what `write` hands to its sink under `path`.
Status publish_file(FileSystem* file_system, const std::string& path,
                    const std::function<Status(const Bundle::Sink&)>& write) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const auto failed = [&](const IoStatus& status) { return status.to_status().with_context(path); };
  if (name.empty()) return Status(StatusCode::kCacheError, path + ": must be the name of a file");
  FileDescriptor directory;
  if (const int error = open_named_file(file_system, folder, O_RDONLY | O_DIRECTORY, 0, &directory);
      error != 0) {
    return failed(IoStatus::failure(error, "open the folder"));
  }
  // A rename would put a file in the place of /dev/null.
  struct stat info;
  if (file_system->stat_at(directory.get(), name.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
      !S_ISLNK(info.st_mode)) {
    return Status(StatusCode::kCacheError, path + ": exists and is not a regular file");
  }
  AtomicFile file(file_system, directory.get());
  // A bundle is made to be read by others, unlike a cache directory.
  if (const IoStatus status = file.create(0644); !status.is_ok()) return failed(status);
  Status written = write([&](std::string_view piece) { return failed(file.write(piece)); });
  if (!written) return written;
  return failed(file.commit(directory.get(), name));
}

}  // namespace

BundleWriter::BundleWriter(std::shared_ptr<FileSystem> file_system)
    : file_system_(file_system ? std::move(file_system) : std::make_shared<PosixFileSystem>()) {}

Status BundleWriter::add(const Entry& entry, Reread reread) {
  Result<std::string> bytes = encode_entry(entry);
  if (!bytes) return bytes.status();
  const Digest checksum = digest_at(*bytes, kEntryChecksumOffset);
  if (const auto found = entries_.find(entry.key); found != entries_.end()) {
    if (found->second.checksum == checksum) return Status::ok();
    return Status(StatusCode::kInvalidArgument,
                  "key S " + to_hex(entry.key.source) + " C " + to_hex(entry.key.compiler) +
                      ": two different entries, with the checksums " +
                      to_hex(found->second.checksum) + " and " + to_hex(checksum) +
                      "; a bundle holds one of a key");
  }
  if (entries_.size() >= kMaxBundleEntries) {
    return Status(StatusCode::kInvalidArgument,
                  "a bundle holds at most " + std::to_string(kMaxBundleEntries) + " entries");
  }
  Item item{.size = bytes->size(), .checksum = checksum, .bytes = {}, .reread = std::move(reread)};
  if (!item.reread) item.bytes = std::move(bytes).value();
  entries_.emplace(entry.key, std::move(item));
  return Status::ok();
}

Result<std::string> BundleWriter::bytes_of(const Key& key, const Item& item) {
  if (!item.reread) return item.bytes;
  const Result<Entry> entry = item.reread();
  if (!entry) return entry.status();
  Result<std::string> bytes = encode_entry(*entry);
  if (bytes && (entry->key != key || bytes->size() != item.size ||
                digest_at(*bytes, kEntryChecksumOffset) != item.checksum)) {
    return Status(StatusCode::kCacheError,
                  key.name() + ": was changed while the bundle was written");
  }
  return bytes;
}

Status BundleWriter::write_to(const Bundle::Sink& sink) const {
  try {
    std::string index;
    index.reserve(entries_.size() * kBundleIndexItemBytes);
    uint64_t offset = kBundleHeaderBytes + entries_.size() * kBundleIndexItemBytes;
    for (const auto& [key, item] : entries_) {
      index += as_bytes(key.source);
      index += as_bytes(key.compiler);
      append_little_endian(&index, offset, 8);
      append_little_endian(&index, item.size, 8);
      index += as_bytes(item.checksum);
      offset += item.size;
    }
    std::string header = "PJKBUNDL";
    append_little_endian(&header, kBundleFormatVersion, 4);
    append_little_endian(&header, 0, 4);  // flags
    append_little_endian(&header, entries_.size(), 8);
    append_little_endian(&header, offset + sizeof(Digest), 8);
    header += as_bytes(sha256({header, index}));

    Sha256 hash;
    const auto write = [&](std::string_view bytes) {
      hash.update(bytes);
      return sink(bytes);
    };
    if (Status status = write(header); !status) return status;
    if (Status status = write(index); !status) return status;
    for (const auto& [key, item] : entries_) {
      const Result<std::string> bytes = bytes_of(key, item);
      if (!bytes) return bytes.status();
      if (Status status = write(*bytes); !status) return status;
    }
    const Digest closing = hash.finish();
    return sink(as_bytes(closing));
  } catch (const std::exception&) {  // std::bad_alloc
    return Status::out_of_memory();
  }
}

Status BundleWriter::write_file(const std::string& path) const {
  return publish_file(file_system_.get(), path,
                      [this](const Bundle::Sink& sink) { return write_to(sink); });
}

Status sign_bundle(const Bundle& bundle, const std::string& path, const Signer& signer,
                   FileSystem* file_system) {
  if (Status status = bundle.verify(); !status) return status;
  const Result<std::string> block = make_signature_block(bundle_message(bundle.digest()), signer);
  if (!block) return block.status();
  return publish_file(file_system, path, [&](const Bundle::Sink& sink) {
    if (Status status = bundle.copy_to(sink); !status) return status;
    return sink(*block);
  });
}

}  // namespace pagejit::cache
