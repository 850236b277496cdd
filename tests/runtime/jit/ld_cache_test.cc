#include "runtime/jit/ld_cache.h"

#include <unistd.h>

#include <cstring>

#include "tests/runtime/jit/test_support.h"

namespace pagejit::jit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void put32(std::string& bytes, uint32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A cache file with these (name, path) pairs.
std::string cache_of(const std::vector<std::pair<std::string, std::string>>& libs) {
  const size_t strings_at = 48 + libs.size() * 24;
  std::string strings;
  std::string entries;
  for (const auto& [name, path] : libs) {
    put32(entries, 0x303);
    put32(entries, static_cast<uint32_t>(strings_at + strings.size()));
    strings += name + '\0';
    put32(entries, static_cast<uint32_t>(strings_at + strings.size()));
    strings += path + '\0';
    put32(entries, 0);
    entries.append(8, '\0');
  }
  std::string bytes = "glibc-ld.so.cache1.1";
  put32(bytes, static_cast<uint32_t>(libs.size()));
  put32(bytes, static_cast<uint32_t>(strings.size()));
  bytes.append(20, '\0');
  return bytes + entries + strings;
}

const std::string kCache = cache_of({{"libc.so.6", "/lib/libc.so.6"},
                                     {"libnvrtc.so.13", "/opt/a/libnvrtc.so.13"},
                                     {"libnvrtc.so.13", "/opt/b/libnvrtc.so.13"},
                                     {"libnvrtc.so.12", "relative/libnvrtc.so.12"}});

TEST(LdCacheTest, FindsEveryPathOfAName) {
  EXPECT_THAT(ld_cache_lookup(kCache, "libnvrtc.so.13"),
              ElementsAre("/opt/a/libnvrtc.so.13", "/opt/b/libnvrtc.so.13"));
  EXPECT_THAT(ld_cache_lookup(kCache, "libnvrtc.so"), IsEmpty());
  EXPECT_THAT(ld_cache_lookup(kCache, "libnvrtc.so.12"), IsEmpty()) << "not absolute";
}

TEST(LdCacheTest, FindsTheNewTableBehindTheOldOne) {
  std::string bytes = "ld.so-1.7.0";
  bytes += '\0';
  put32(bytes, 3);
  bytes.append(3 * 12, 'x');
  while (bytes.size() % 8 != 0) bytes += '\0';
  EXPECT_THAT(ld_cache_lookup(bytes + kCache, "libc.so.6"), ElementsAre("/lib/libc.so.6"));
}

TEST(LdCacheTest, GarbageAtEveryByteDoesNoHarm) {
  for (size_t size = 0; size < kCache.size(); ++size) {
    (void)ld_cache_lookup(std::string_view(kCache).substr(0, size), "libnvrtc.so.13");
    for (const char fill : {'\x7f', '\xff'}) {
      std::string bytes = kCache;
      bytes.replace(size, std::min<size_t>(4, bytes.size() - size), 4, fill);
      (void)ld_cache_lookup(bytes, "libnvrtc.so.13");
    }
  }
  std::string old = "ld.so-1.7.0";
  old += '\0';
  put32(old, 0xffffffffu);
  EXPECT_THAT(ld_cache_lookup(old + kCache, "libc.so.6"), IsEmpty());
}

TEST(LdCacheTest, ReadsTheCacheOfThisMachine) {
  if (access("/etc/ld.so.cache", F_OK) != 0)
    GTEST_SKIP() << "the loader of this machine keeps no /etc/ld.so.cache";
  const std::string cache = read_all("/etc/ld.so.cache");
  ASSERT_FALSE(cache.empty());
  EXPECT_FALSE(ld_cache_lookup(cache, "libc.so.6").empty());
}

TEST(LdCacheTest, LoaderPathsComeInTheLoadersOrder) {
  TempFolder root;
  root.write("etc/ld.so.cache",
             cache_of({{"libx.so.1", "/opt/x/libx.so.1"}, {"libx.so.1", "/opt/gone/libx.so.1"}}));
  root.write("opt/x/libx.so.1", "");
  root.write("usr/lib64/libx.so.1", "");
  TempFolder user;
  user.write("libx.so.1", "");
  const Environment environment =
      environment_of({{"LD_LIBRARY_PATH", "/nonexistent::" + user.path()}});
  EXPECT_THAT(
      loader_paths("libx.so.1", environment, root.path()),
      ElementsAre(user / "libx.so.1", root / "opt/x/libx.so.1", root / "usr/lib64/libx.so.1"));
  EXPECT_THAT(loader_paths("liby.so.1", environment, root.path()), IsEmpty());
}

}  // namespace
}  // namespace pagejit::jit
