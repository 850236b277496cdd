#include "cache/memory_cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/cache/cache_test_util.h"

namespace pagejit::cache {
namespace {

std::shared_ptr<const Entry> shared_entry(int number, size_t bytes) {
  Entry entry = example_entry(number, bytes);
  entry.metadata.clear();
  return std::make_shared<const Entry>(std::move(entry));
}

TEST(MemoryCacheTest, FindsWhatWasPut) {
  MemoryCache cache;
  const auto entry = shared_entry(1, 10);
  EXPECT_EQ(cache.find(entry->key), nullptr);
  cache.put(entry);
  EXPECT_EQ(cache.find(entry->key), entry);
  EXPECT_EQ(cache.find(example_entry(2).key), nullptr);
  EXPECT_EQ(cache.stats().hits, 1u);
  EXPECT_EQ(cache.stats().misses, 2u);
  EXPECT_EQ(cache.stats().bytes, 10u);
}

TEST(MemoryCacheTest, PutReplacesAndCountsBytesOnce) {
  MemoryCache cache;
  cache.put(shared_entry(1, 10));
  const auto newer = shared_entry(1, 30);
  cache.put(newer);
  EXPECT_EQ(cache.find(newer->key), newer);
  EXPECT_EQ(cache.stats().entries, 1u);
  EXPECT_EQ(cache.stats().bytes, 30u);
}

TEST(MemoryCacheTest, TheLeastRecentlyUsedGoesFirst) {
  MemoryCache cache(100);
  for (int i = 0; i < 4; ++i) cache.put(shared_entry(i, 25));
  ASSERT_NE(cache.find(example_entry(0).key), nullptr);  // now the most recent
  cache.put(shared_entry(4, 50));                        // needs the room of two: 1 and 2
  EXPECT_NE(cache.find(example_entry(0).key), nullptr);
  EXPECT_EQ(cache.find(example_entry(1).key), nullptr);
  EXPECT_EQ(cache.find(example_entry(2).key), nullptr);
  EXPECT_NE(cache.find(example_entry(3).key), nullptr);
  EXPECT_EQ(cache.stats().evictions, 2u);
  EXPECT_EQ(cache.stats().bytes, 100u);
}

TEST(MemoryCacheTest, AnEntryLargerThanTheCacheEvictsNothing) {
  MemoryCache cache(100);
  cache.put(shared_entry(1, 60));
  cache.put(shared_entry(2, 101));
  EXPECT_NE(cache.find(example_entry(1).key), nullptr);
  EXPECT_EQ(cache.find(example_entry(2).key), nullptr);
}

TEST(MemoryCacheTest, AHeldEntryOutlivesItsEviction) {
  MemoryCache cache(100);
  cache.put(shared_entry(1, 60));
  const auto held = cache.find(example_entry(1).key);
  cache.put(shared_entry(2, 60));
  EXPECT_EQ(cache.find(example_entry(1).key), nullptr);
  EXPECT_EQ(held->image.size(), 60u);
}

TEST(MemoryCacheTest, EraseForgets) {
  MemoryCache cache;
  cache.put(shared_entry(1, 10));
  cache.erase(example_entry(1).key);
  cache.erase(example_entry(1).key);
  EXPECT_EQ(cache.find(example_entry(1).key), nullptr);
  EXPECT_EQ(cache.stats().bytes, 0u);
}

TEST(MemoryCacheTest, ManyThreadsAgree) {
  MemoryCache cache(500);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 1000; ++i) {
        const int number = (i * 7 + t) % 12;
        if (const auto entry = cache.find(example_entry(number).key)) {
          EXPECT_EQ(entry->key, example_entry(number).key);
        } else {
          cache.put(shared_entry(number, 100));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.stats().bytes, 500u);
}

}  // namespace
}  // namespace pagejit::cache
