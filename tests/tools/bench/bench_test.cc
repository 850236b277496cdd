// What of the benchmarks can be tested without a GPU: their cases and formulas, that their launches
// compute what they should (on the emulator), and that the emulator is not timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/sweep/test_device.h"
#include "tools/bench/attention_bench.h"
#include "tools/bench/cascade_bench.h"
#include "tools/reference/narrow_float.h"

namespace pagejit {
namespace {

constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;

std::vector<AttentionBenchCase> all_cases() {
  std::vector<AttentionBenchCase> all;
  for (auto* cases : {&decode_cases, &v1v2_cases, &paging_cases, &fp8_cases, &mla_cases,
                      &prefill_cases, &mixed_cases}) {
    const std::vector<AttentionBenchCase> some = cases();
    EXPECT_FALSE(some.empty());
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(BenchCasesTest, EachIsLegalOnEveryBenchmarkedTarget) {
  for (const AttentionBenchCase& c : all_cases()) {
    EXPECT_GT(c.query_tokens(), 0) << c.name;
    EXPECT_GT(kv_bytes(c), 0) << c.name;
    EXPECT_GT(flops(c), 0) << c.name;
    EXPECT_TRUE(c.chunk_queries == 0 || c.spec.queries != QueryLengths::kOne) << c.name;
    EXPECT_LE(c.chunk_queries, c.chunk_seq_len) << c.name;
    for (const char* target : {"sm_80", "sm_90a", "sm_120a"}) {
      const Status status = supports(c.spec, *parse_target(target));
      EXPECT_TRUE(status) << c.name << ": " << status.to_string();
    }
  }
  for (const CascadeBenchCase& c : cascade_cases()) {
    EXPECT_EQ(c.prefix_len % c.spec.block_size, 0) << "one table leads to prefix and suffix";
    EXPECT_TRUE(supports(CascadeSpec{.attention = c.spec}, *parse_target("sm_90a"))) << c.name;
  }
}

TEST(BenchCasesTest, TheSuitesHaveTheShapesThatTheGoalsName) {
  const auto has = [](const std::vector<AttentionBenchCase>& cases, auto wanted) {
    return std::any_of(cases.begin(), cases.end(), wanted);
  };
  for (const auto& [num_seqs, seq_len] : {std::pair(8, 32768), std::pair(1, 32768), {1, 1024}}) {
    EXPECT_TRUE(has(decode_cases(),
                    [seqs = num_seqs, len = seq_len](const auto& c) {
                      return c.num_seqs == seqs && c.seq_len == len && c.num_kv_heads == 8 &&
                             c.spec.group_size == 4;
                    }))
        << num_seqs << " x " << seq_len;
  }
  EXPECT_TRUE(has(fp8_cases(), [](const auto& c) {
    return c.spec.kv_dtype == kE4m3 && c.num_seqs == 8 && c.seq_len == 32768;
  }));
  for (const int num_heads : {16, 64, 128}) {
    EXPECT_TRUE(has(mla_cases(), [&](const auto& c) {
      return c.spec.latent && c.spec.group_size == num_heads && c.num_seqs == 128 &&
             c.seq_len == 32768;
    })) << num_heads;
  }
  EXPECT_TRUE(has(prefill_cases(), [](const auto& c) {
    return c.spec.causality == Causality::kCausal && c.chunk_queries == 16384 &&
           c.chunk_seq_len == 16384 && c.spec.head_size == 128 && c.num_seqs == 0;
  }));
  EXPECT_TRUE(
      has(mixed_cases(), [](const auto& c) { return c.num_seqs > 1 && c.chunk_queries > 1; }));
  const CascadeBenchCase first = cascade_cases().front();
  EXPECT_EQ(first.num_seqs, 64);
  EXPECT_EQ(first.prefix_len, 8192);
  EXPECT_EQ(first.suffix_len, 512);
}

TEST(BenchFormulaTest, BytesGoByTheTypeOfKeysAndValues) {
  AttentionBenchCase c{.name = "", .spec = {.head_size = 128, .group_size = 4}};
  c.num_seqs = 8;
  c.seq_len = 32768;
  EXPECT_DOUBLE_EQ(kv_bytes(c), 2.0 * 8 * 32768 * 8 * 128 * 2);
  c.spec.kv_dtype = kE4m3;
  EXPECT_DOUBLE_EQ(kv_bytes(c), 2.0 * 8 * 32768 * 8 * 128);
  c.chunk_queries = 10;
  c.chunk_seq_len = 1000;
  EXPECT_DOUBLE_EQ(kv_bytes(c), 2.0 * (8 * 32768 + 1000) * 8 * 128);
  const AttentionBenchCase mla = mla_cases().front();
  EXPECT_DOUBLE_EQ(kv_bytes(mla), 4096.0 * 576 * 2) << "K's rows hold V";
  EXPECT_DOUBLE_EQ(flops(mla), 2.0 * 4096 * 16 * (576 + 512));
}

TEST(BenchFormulaTest, OnlyTheTokensThatSomeQuerySeesAreRead) {
  AttentionBenchCase c{.name = "", .spec = {.head_size = 128, .group_size = 4}};
  c.num_seqs = 3;
  c.seq_len = 1000;
  c.window_left = 99;
  c.chunk_size = 400;
  c.block_sparse = {.local_blocks = 2, .vert_stride = 4, .block_size = 64};
  const auto tokens = [&c] { return read_bytes(c) / (c.num_kv_heads * kv_token_bytes(c.spec)); };
  EXPECT_DOUBLE_EQ(tokens(), 3 * 1000) << "launch values without their feature";
  c.spec.window = true;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 100);
  c.window_left = -1;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 1000);
  c.window_left = 5000;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 1000);
  c.spec.chunked = true;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 200) << "token 999 is in the chunk that begins at 800";
  c.window_left = 99;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 100);
  c.spec.window = c.spec.chunked = false;
  c.spec.block_sparse = true;
  // Blocks 14 and 15, of which the last has 40 tokens, and 3 of 14 before them.
  EXPECT_DOUBLE_EQ(tokens(), 3 * (64 + 40 + 3 * 64));
  c.block_sparse.vert_stride = 1;
  EXPECT_DOUBLE_EQ(tokens(), 3 * 1000);
  c.block_sparse = {.local_blocks = 0, .vert_stride = 65536, .block_size = 64};
  EXPECT_DOUBLE_EQ(tokens(), 1) << "never nothing";

  // All queries of a prompt together; a chunk of one sees what its first token sees, and itself.
  c.spec.block_sparse = false;
  c.spec.window = true;
  c.spec.queries = QueryLengths::kMany;
  c.num_seqs = 0;
  c.chunk_queries = c.chunk_seq_len = 1000;
  EXPECT_DOUBLE_EQ(tokens(), 1000);
  c.chunk_queries = 10;
  EXPECT_DOUBLE_EQ(tokens(), 10 + 99);
  c.spec.chunked = true;
  c.spec.window = false;
  c.chunk_queries = 300;
  EXPECT_DOUBLE_EQ(tokens(), 1000 - 400) << "token 700 is in the chunk that begins at 400";
}

TEST(BenchFormulaTest, OperationsAreThoseOfVisibleKeys) {
  AttentionBenchCase c{.name = "", .spec = {.head_size = 128, .group_size = 4}};
  c.num_seqs = c.seq_len = 0;
  c.spec.queries = QueryLengths::kMany;
  c.chunk_queries = c.chunk_seq_len = 16384;
  EXPECT_DOUBLE_EQ(flops(c), 4.0 * 16384 * 16384 * 32 * 128);
  c.spec.causality = Causality::kCausal;
  EXPECT_DOUBLE_EQ(flops(c), 4.0 * 16384 * 16384 / 2 * 32 * 128);
  c.chunk_queries = 2048;  // 14,336 keys for all, and half of 2,048
  EXPECT_DOUBLE_EQ(flops(c), 4.0 * 2048 * (14336 + 1024) * 32 * 128);
  c.num_seqs = 64;
  c.seq_len = 4096;
  EXPECT_DOUBLE_EQ(flops(c), 4.0 * (2048.0 * (14336 + 1024) + 64 * 4096) * 32 * 128);
  AttentionBenchResult result;
  result.bench_case = c;
  result.times.median_us = 100;
  EXPECT_DOUBLE_EQ(result.teraflops(), flops(c) / 100e-6 / 1e12);
  EXPECT_DOUBLE_EQ(result.terabytes_per_s(), kv_bytes(c) / 100e-6 / 1e12);
}

TEST(BenchFormulaTest, ACascadeReadsThePrefixOncePerTile) {
  CascadeBenchCase c;
  c.spec = {.head_size = 128, .group_size = 2};
  EXPECT_DOUBLE_EQ(flat_kv_bytes(c), 64.0 * 8704 * 8 * 128 * 4);
  EXPECT_DOUBLE_EQ(cascade_kv_bytes(c, 128), (8192 + 64.0 * 512) * 8 * 128 * 4);
  EXPECT_GE(flat_kv_bytes(c) / cascade_kv_bytes(c, 128), 12);
  c.spec.group_size = 8;
  EXPECT_DOUBLE_EQ(cascade_kv_bytes(c, 128), (4 * 8192 + 64.0 * 512) * 8 * 128 * 4);
}

TEST(BenchPoolTest, KeysAndValuesAreFiniteAndOfAboutUnitSize) {
  for (const DataType type : {DataType::kFloat16, kBF16, kE4m3, DataType::kFloat8E5m2}) {
    const auto bytes_each = static_cast<size_t>(data_type_bytes(type));
    const std::vector<uint8_t> bytes = random_elements(type, 1000);
    ASSERT_EQ(bytes.size(), 1000 * bytes_each);
    std::set<float> values;
    for (size_t i = 0; i < bytes.size(); i += bytes_each) {
      const unsigned high = bytes_each == 2 ? unsigned{bytes[i + 1]} << 8 : 0u;
      const float value = decode_float(type, static_cast<uint16_t>(high | bytes[i]));
      ASSERT_GE(std::abs(value), 0.5f) << data_type_name(type);
      ASSERT_LT(std::abs(value), 2.0f) << data_type_name(type);
      values.insert(value);
    }
    EXPECT_GE(values.size(), 8u) << data_type_name(type);
  }
}

TEST(BenchPoolTest, ATurnOverAllPoolsReadsMoreThanAnyL2Holds) {
  EXPECT_EQ(pools_for(100e6, 100e6), 11);
  EXPECT_EQ(pools_for(1e6, 1e6), 1024);
  EXPECT_EQ(pools_for(1e12, 1e12), 2);
  EXPECT_EQ(pools_for(1e6, 4e6), 1024) << "by what is read";
  EXPECT_EQ(pools_for(1e6, kMostPoolBytes / 100), 100) << "no more memory";
  EXPECT_EQ(pools_for(1e6, 1e12), 2);
  EXPECT_EQ(pools_for(1, 1), kMaxPools);
}

TEST(BenchPoolTest, OfAWindowOnlyTheTokensThatAreReadCount) {
  AttentionBenchCase c{.name = "", .spec = {.head_size = 128, .group_size = 4}};
  c.num_seqs = 1;
  c.seq_len = 8192;
  EXPECT_EQ(pools_for(c), 31);
  c.spec.window = true;
  c.window_left = 1023;
  EXPECT_GE(pools_for(c) * read_bytes(c), kRotatedBytes);
  EXPECT_EQ(pools_for(c), 245);
  c.window_left = 127;
  EXPECT_EQ(pools_for(c), 256);
  EXPECT_LE(pools_for(c) * kv_bytes(c), kMostPoolBytes);
}

// ---- On the emulator ----

class BenchOnDeviceTest : public DeviceTest {
 protected:
  static std::vector<float> values(const DeviceBuffer& out, DataType type) {
    const auto bytes_each = static_cast<size_t>(data_type_bytes(type));
    std::vector<uint16_t> codes(out.size_bytes() / bytes_each);
    EXPECT_EQ(bytes_each, 2u);
    EXPECT_TRUE(out.download(0, codes.data(), out.size_bytes()).is_ok());
    std::vector<float> all;
    for (const uint16_t code : codes) all.push_back(decode_float(type, code));
    return all;
  }
};

TEST_F(BenchOnDeviceTest, TheEmulatorIsNotTimed) {
  if (!session().is_emulator()) GTEST_SKIP() << "a GPU is timed, not refused";
  const auto refused = BenchDevice::create(engine(), session(), device().options);
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(refused.status().message(),
            "the emulator has no times worth printing; benchmarks need a GPU");
}

// Small cases of every suite's kind: results are means of V, whose elements are 0.5 to 2 of either
// sign. What the kernels compute is tested elsewhere; here it is the arguments.
TEST_F(BenchOnDeviceTest, LaunchesComputeResults) {
  std::vector<AttentionBenchCase> cases;
  for (const AttentionBenchCase& c : all_cases()) {
    AttentionBenchCase small = c;
    small.num_kv_heads = 1;
    small.num_seqs = std::min(c.num_seqs, 2);
    small.seq_len = std::min(c.seq_len, 100);
    small.chunk_queries = std::min(c.chunk_queries, 40);
    small.chunk_seq_len = std::min(c.chunk_seq_len, 60);
    const auto same = [&](const AttentionBenchCase& other) {
      return other.spec == small.spec && other.num_seqs == small.num_seqs &&
             other.chunk_queries == small.chunk_queries;
    };
    if (std::none_of(cases.begin(), cases.end(), same)) cases.push_back(small);
  }
  EXPECT_GE(cases.size(), 12u);
  for (const AttentionBenchCase& c : cases) {
    Result<AttentionWorkload> work = AttentionWorkload::create(engine(), session(), c, 2);
    ASSERT_TRUE(work.is_ok()) << c.name << ": " << work.status().to_string();
    EXPECT_EQ(work->num_pools(), 2);
    for (const int pool : {0, 1}) {
      Status status = work->launch(pool, nullptr);
      if (status) status = session().synchronize();
      ASSERT_TRUE(status) << c.name << ": " << status.to_string() << report();
      const std::vector<float> out = values(work->out(), c.spec.out_dtype);
      EXPECT_EQ(out.size(), static_cast<size_t>(c.query_tokens() * c.spec.group_size *
                                                value_head_size(c.spec)));
      int zeros = 0;
      for (const float value : out) {
        ASSERT_LT(std::abs(value), 2.0f) << canonical_text(c.spec);
        zeros += value == 0 ? 1 : 0;
      }
      EXPECT_LT(zeros, static_cast<int>(out.size()) / 20 + 1) << canonical_text(c.spec);
    }
  }
}

// Both ways over the same caches.
TEST_F(BenchOnDeviceTest, ACascadeComputesWhatTheFlatKernelDoes) {
  for (const int group_size : {1, 4}) {
    CascadeBenchCase c;
    c.spec = {.head_size = 64, .block_size = 16, .group_size = group_size};
    c.num_kv_heads = 2;
    c.num_seqs = 5;
    c.prefix_len = 160;
    c.suffix_len = 30;
    Result<CascadeWorkload> work = CascadeWorkload::create(engine(), session(), c, 2);
    ASSERT_TRUE(work.is_ok()) << work.status().to_string();
    for (const int pool : {0, 1}) {
      Status status = work->launch_flat(pool, nullptr);
      if (status) status = session().synchronize();
      ASSERT_TRUE(status) << status.to_string() << report();
      const std::vector<float> flat = values(work->out(), kBF16);
      status = work->launch_cascade(pool, nullptr);
      if (status) status = session().synchronize();
      ASSERT_TRUE(status) << status.to_string() << report();
      const std::vector<float> cascade = values(work->out(), kBF16);
      ASSERT_EQ(flat.size(), cascade.size());
      for (size_t i = 0; i < flat.size(); ++i) {
        // P and the result rounded to bf16, twice; values are below 2.
        ASSERT_NEAR(cascade[i], flat[i], 2 * 2 * 0x1p-8) << i;
      }
      EXPECT_NE(std::count_if(flat.begin(), flat.end(), [](float v) { return v != 0; }), 0);
    }
    CascadeBenchResult result;
    work->describe(&result);
    EXPECT_EQ(result.num_pools, 2);
    EXPECT_EQ(result.prefix_splits, 1);
  }
}

}  // namespace
}  // namespace pagejit
