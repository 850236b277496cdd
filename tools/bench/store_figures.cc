#include "tools/bench/store_figures.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "cache/bundle.h"
#include "cache/bundle_writer.h"
#include "cache/disk_cache.h"
#include "tools/bench/bench_child.h"
#include "tools/bench/quartiles.h"

namespace pagejit::bench {
namespace {

// What attention kernels come to: cubins have 20 to 80 KB.
constexpr size_t kImageBytes = 50'000;

cache::Entry make_entry(uint64_t number, size_t image_bytes) {
  std::mt19937_64 random(number);
  cache::Entry entry;
  entry.key.source = cache::sha256({"source " + std::to_string(number)});
  entry.key.compiler = cache::sha256({"compiler"});
  entry.metadata = "metadata of about the usual size: " + std::string(500, 'x');
  entry.image.resize(image_bytes);
  for (char& byte : entry.image) byte = static_cast<char>(random());
  return entry;
}

double us_since(Clock::time_point begin) { return ms_since(begin) * 1000; }

// Anonymous and heap pages of this process in MB; mapped files and the page cache do not count.
double resident_mb() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("RssAnon:")) return std::strtod(line.c_str() + 8, nullptr) / 1024;
  }
  return -1;
}

bool fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return false;
}

}  // namespace

bool bench_disk_hit(const std::string& folder) {
  cache::DiskCacheOptions options;
  options.directory.path = folder + "/hits";
  const auto disk = cache::DiskCache::open(std::move(options));
  const cache::Entry entry = make_entry(1, kImageBytes);
  if (const Status status = disk->publish(entry); !status) return fail(status);
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    const Clock::time_point begin = Clock::now();
    if (!disk->lookup(entry.key).entry) return fail(Status(StatusCode::kInternal, "no hit"));
    times.push_back(us_since(begin));
  }
  return print_at_most("disk hit of 50 KB, verified, page cache warm: median of 1,000",
                       median(times), 100, "us", noise_of(times));
}

// In a process of its own, whose heap has no freed memory that would be used again.
int child_open(const std::string& path) {
  const double before_mb = resident_mb();
  const auto bundle = cache::Bundle::open_file(path);
  if (!bundle) return fail(bundle.status()) ? 0 : 1;
  std::printf("%.3f\n", resident_mb() - before_mb);
  return 0;
}

bool bench_bundle(const std::string& self, const std::string& folder) {
  constexpr uint64_t kEntries = 5000;
  const std::string path = folder + "/bundle.pjb";
  {
    cache::BundleWriter writer;
    for (uint64_t i = 0; i < kEntries; ++i) {
      if (Status status = writer.add(make_entry(i, kImageBytes)); !status) return fail(status);
    }
    if (Status status = writer.write_file(path); !status) return fail(status);
  }
  std::vector<double> opens;
  for (int i = 0; i < 21; ++i) {
    const Clock::time_point begin = Clock::now();
    const auto bundle = cache::Bundle::open_file(path);
    if (!bundle) return fail(bundle.status());
    opens.push_back(ms_since(begin));
  }
  const std::optional<std::string> held_mb = run_child({self, "--open", path});
  if (!held_mb) return false;
  const auto bundle = cache::Bundle::open_file(path);
  if (!bundle) return fail(bundle.status());
  std::vector<double> hits;
  for (uint64_t i = 0; i < 2000; ++i) {
    cache::Key key;
    key.source = cache::sha256({"source " + std::to_string(i * 7919 % kEntries)});
    key.compiler = cache::sha256({"compiler"});
    const Clock::time_point begin = Clock::now();
    if (!(*bundle)->lookup(key).entry) return fail(Status(StatusCode::kInternal, "no hit"));
    hits.push_back(us_since(begin));
  }
  bool good = print_at_most("bundle of 5,000 entries of 50 KB: open, median of 21", median(opens),
                            5, "ms", noise_of(opens));
  good = print_at_most("  hit, verified, page cache warm: median of 2,000", median(hits), 50, "us",
                       noise_of(hits)) &&
         good;
  return print_at_most("  memory that an open bundle holds", std::atof(held_mb->c_str()), 1,
                       "MB") &&
         good;
}

bool bench_eviction(const std::string& folder) {
  constexpr int kEntries = 100'000;
  constexpr int kPublishes = 2'000;
  constexpr size_t kSmallBytes = 256;  // names and times are what eviction looks at
  const std::string path = folder + "/many";
  // Written without the cache, which would sync each of them.
  for (int shard = 0; shard < 256; ++shard) {
    char name[8];
    std::snprintf(name, sizeof name, "%02x", shard);
    std::filesystem::create_directories(path + "/v1/objects/" + name);
  }
  for (const char* made : {"", "/v1", "/v1/objects"}) {
    std::filesystem::permissions(path + made, std::filesystem::perms::owner_all);
  }
  for (uint64_t i = 0; i < kEntries; ++i) {
    const cache::Entry entry = make_entry(i, kSmallBytes);
    const std::string file = entry.key.file_name();
    std::ofstream(path + "/v1/objects/" + file.substr(0, 2) + "/" + file)
        << *cache::encode_entry(entry);
  }
  cache::DiskCacheOptions options;
  options.directory.path = path;
  options.max_bytes = uint64_t{kEntries} * kSmallBytes;  // the headers are too much
  const auto disk = cache::DiskCache::open(std::move(options));
  double longest_lookup_us = 0;
  for (uint64_t i = 0; i < kPublishes; ++i) {
    const cache::Entry entry = make_entry(kEntries + i, kSmallBytes);
    if (const Status status = disk->publish(entry); !status) return fail(status);
    const Clock::time_point begin = Clock::now();
    if (!disk->lookup(entry.key).entry) return fail(Status(StatusCode::kInternal, "no hit"));
    longest_lookup_us = std::max(longest_lookup_us, us_since(begin));
  }
  const cache::DiskCacheStats stats = disk->stats();
  print_figure("  evicted beside 2,000 publishes, of 100,000 entries",
               static_cast<double>(stats.evictions), "");
  const bool good =
      print_at_most("eviction in 100,000 entries: longest that a publish waited for it",
                    static_cast<double>(stats.longest_eviction.count()) / 1000, 5, "ms");
  print_figure("  longest look-up beside it", longest_lookup_us / 1000, "ms");
  return good && stats.evictions > 0;
}

}  // namespace pagejit::bench
