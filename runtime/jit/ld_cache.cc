#include "runtime/jit/ld_cache.h"

#include <cstdint>
#include <cstring>

#include "runtime/jit/file_io.h"

namespace pagejit::jit {
namespace {

constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";

struct OldHeader {
  char magic[11];
  uint32_t num_libs;
};
constexpr size_t kOldEntryBytes = 12;

struct NewHeader {
  char magic[20];
  uint32_t num_libs;
  uint32_t strings_bytes;
  uint32_t unused[5];
};
static_assert(sizeof(NewHeader) == 48);

struct NewEntry {
  int32_t flags;
  uint32_t name;  // offsets from the start of the new header
  uint32_t path;
  uint32_t os_version;
  uint64_t hwcap;
};
static_assert(sizeof(NewEntry) == 24);

// A cache of a large system has some 0.5 MB.
constexpr size_t kMaxCacheBytes = 16 << 20;

std::string_view string_at(std::string_view bytes, size_t offset) {
  if (offset >= bytes.size()) return {};
  const std::string_view rest = bytes.substr(offset);
  const size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

const char* const kDefaultFolders[] = {
#if defined(__x86_64__)
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
#endif
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
};

}  // namespace

std::vector<std::string> ld_cache_lookup(std::string_view cache, std::string_view soname) {
  if (cache.starts_with(kOldMagic)) {
    if (cache.size() < sizeof(OldHeader)) return {};
    OldHeader old;
    std::memcpy(&old, cache.data(), sizeof(old));
    size_t end = sizeof(OldHeader) + size_t{old.num_libs} * kOldEntryBytes;
    end = (end + 7) / 8 * 8;  // the new header is aligned for its 64-bit members
    if (end > cache.size()) return {};
    cache.remove_prefix(end);
  }
  if (!cache.starts_with(kNewMagic) || cache.size() < sizeof(NewHeader)) return {};
  NewHeader header;
  std::memcpy(&header, cache.data(), sizeof(header));
  if (header.num_libs > (cache.size() - sizeof(NewHeader)) / sizeof(NewEntry)) return {};
  std::vector<std::string> paths;
  for (size_t i = 0; i < header.num_libs; ++i) {
    NewEntry entry;
    std::memcpy(&entry, cache.data() + sizeof(NewHeader) + i * sizeof(NewEntry), sizeof(entry));
    if (string_at(cache, entry.name) != soname) continue;
    const std::string_view path = string_at(cache, entry.path);
    if (path.starts_with('/')) paths.emplace_back(path);
  }
  return paths;
}

std::vector<std::string> loader_paths(const std::string& soname, const Environment& environment,
                                      const std::string& root) {
  std::vector<std::string> paths;
  const auto add = [&paths](const std::string& path) {
    if (is_file(path)) paths.push_back(path);
  };
  for (const std::string& folder : split_path_list(environment("LD_LIBRARY_PATH").value_or(""))) {
    add(folder + "/" + soname);
  }
  if (Result<std::string> cache = read_file(root + "/etc/ld.so.cache", kMaxCacheBytes)) {
    for (const std::string& path : ld_cache_lookup(*cache, soname)) add(root + path);
  }
  for (const char* folder : kDefaultFolders) add(root + folder + "/" + soname);
  return paths;
}

}  // namespace pagejit::jit
