// Kernels through C on the emulator: a cache write and the attention that reads what it wrote give
// the bytes that the same give through C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "pagejit/pagejit.h"
#include "runtime/c_api/family.h"
#include "tests/runtime/jit/test_support.h"
#include "tools/check/device_buffer.h"

namespace pagejit {
namespace {

// Two sequences of 5 and 19 tokens in blocks of 16; 2 KV heads, 4 query heads.
constexpr int kHeadSize = 64;
constexpr int kBlockSize = 16;
constexpr int kNumBlocks = 4;
constexpr int kKvHeads = 2;
constexpr int kGroupSize = 2;
constexpr int kSeqs = 2;
constexpr int kTokens = 5 + 19;
constexpr int64_t kRow = kKvHeads * kHeadSize;
constexpr int64_t kQueryRow = kRow * kGroupSize;
constexpr float kScale = 0.125f;  // 1 / sqrt(kHeadSize)
const std::vector<int32_t> kSeqLens = {5, 19};
const std::vector<int32_t> kBlockTable = {2, 0, 3, 1};  // [kSeqs, 2]

std::vector<float> numbers(int64_t count, int first) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(std::sin(0.37f * static_cast<float>(first + i)));
  }
  return result;
}

std::vector<int64_t> slots() {
  std::vector<int64_t> result;
  for (int seq = 0; seq < kSeqs; ++seq) {
    for (int token = 0; token < kSeqLens[seq]; ++token) {
      result.push_back(int64_t{kBlockTable[2 * seq + token / kBlockSize]} * kBlockSize +
                       token % kBlockSize);
    }
  }
  return result;
}

// One of the two sides: its own memory on the device.
struct Tensors {
  explicit Tensors(const DeviceSession& session)
      : key(copy(session, numbers(kTokens * kRow, 1))),
        value(copy(session, numbers(kTokens * kRow, 1000))),
        q(copy(session, numbers(kSeqs * kQueryRow, 5000))),
        k_cache(copy(session, std::vector<float>(kNumBlocks * kBlockSize * kRow, 7))),
        v_cache(copy(session, std::vector<float>(kNumBlocks * kBlockSize * kRow, 7))),
        out(copy(session, std::vector<float>(kSeqs * kQueryRow, 7))),
        slot_mapping(copy(session, slots())),
        block_table(copy(session, kBlockTable)),
        seq_lens(copy(session, kSeqLens)) {}

  template <class T>
  static DeviceBuffer copy(const DeviceSession& session, const std::vector<T>& from) {
    Result<DeviceBuffer> made =
        DeviceBuffer::copy_of(session, from.data(), from.size() * sizeof(T));
    EXPECT_TRUE(made) << made.status().to_string();
    return made ? std::move(*made) : DeviceBuffer();
  }
  static std::string bytes(const DeviceBuffer& buffer) {
    std::string result(buffer.size_bytes(), '\0');
    const Status status = buffer.download(0, result.data(), result.size());
    EXPECT_TRUE(status) << status.to_string();
    return result;
  }

  DeviceBuffer key, value, q, k_cache, v_cache, out, slot_mapping, block_table, seq_lens;
};

class CApiEmulatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<EngineOptions> read = EngineOptions::from_environment();
    ASSERT_TRUE(read) << read.status().to_string();
    options_ = *read;
    options_.cache_dir = folder_ / "cache";  // of both engines: each kernel is compiled once
    Result<std::unique_ptr<DeviceSession>> opened = DeviceSession::open(options_);
    ASSERT_TRUE(opened) << opened.status().to_string();
    session = std::move(*opened);
    ASSERT_TRUE(session->is_emulator());
    ASSERT_EQ(pagejit_error_create(&error), PAGEJIT_OK);
  }
  void TearDown() override { pagejit_error_destroy(error); }

  void run_cpp(Tensors& t);
  void run_c(Tensors& t);

  std::unique_ptr<DeviceSession> session;
  pagejit_error* error = nullptr;

 private:
  void expect_ok(pagejit_status status) {
    ASSERT_EQ(status, PAGEJIT_OK) << pagejit_error_message(error);
  }

  EngineOptions options_;
  jit::TempFolder folder_;
};

// For the arguments of both languages, whose fields have the same names.
template <class Args>
void fill_cache_write(Args& args, Tensors& t) {
  args.key = t.key.data();
  args.value = t.value.data();
  args.key_stride_token = args.value_stride_token = kRow;
  args.key_stride_head = args.value_stride_head = kHeadSize;
  args.k_cache = t.k_cache.data();
  args.v_cache = t.v_cache.data();
  args.k_strides = args.v_strides = {kBlockSize * kRow, kRow, kHeadSize};
  args.slot_mapping = t.slot_mapping.data<const int64_t>();
  args.num_tokens = kTokens;
  args.num_kv_heads = kKvHeads;
}
template <class Args>
void fill_attention(Args& args, Tensors& t) {
  args.q = t.q.data();
  args.q_stride_token = args.out_stride_token = kQueryRow;
  args.q_stride_head = args.out_stride_head = kHeadSize;
  args.k_cache = t.k_cache.data();
  args.v_cache = t.v_cache.data();
  args.k_strides = args.v_strides = {kBlockSize * kRow, kRow, kHeadSize};
  args.num_blocks = kNumBlocks;
  args.block_table = t.block_table.data<const int32_t>();
  args.block_table_stride = args.max_blocks_per_seq = 2;
  args.seq_lens = t.seq_lens.data<const int32_t>();
  args.out = t.out.data();
  args.num_seqs = kSeqs;
  args.num_kv_heads = kKvHeads;
  args.scale = kScale;
  args.num_splits = 1;
}

void CApiEmulatorTest::run_cpp(Tensors& t) {
  Result<std::shared_ptr<Engine>> engine = Engine::create(options_);
  ASSERT_TRUE(engine) << engine.status().to_string();
  Result<CacheWriteKernel> write = (*engine)->prepare(CacheWriteSpec{
      .dtype = DataType::kFloat32, .kv_dtype = DataType::kFloat32, .head_size = kHeadSize});
  ASSERT_TRUE(write) << write.status().to_string();
  Result<Kernel> attention = (*engine)->prepare(KernelSpec{.q_dtype = DataType::kFloat32,
                                                           .kv_dtype = DataType::kFloat32,
                                                           .out_dtype = DataType::kFloat32,
                                                           .head_size = kHeadSize,
                                                           .group_size = kGroupSize});
  ASSERT_TRUE(attention) << attention.status().to_string();
  CacheWriteArgs written;
  fill_cache_write(written, t);
  Status status = write->launch(written, nullptr);
  ASSERT_TRUE(status) << status.to_string();
  AttentionArgs args;
  fill_attention(args, t);
  status = attention->launch(args, nullptr);
  ASSERT_TRUE(status) << status.to_string();
  ASSERT_TRUE(session->synchronize());
}

void CApiEmulatorTest::run_c(Tensors& t) {
  pagejit_engine_options options;
  pagejit_engine_options_init(&options, sizeof options);
  options.driver = options_.driver.c_str();
  options.emulator_path = options_.emulator_path.c_str();
  options.cache_dir = options_.cache_dir.c_str();
  pagejit_engine* engine = nullptr;
  expect_ok(pagejit_engine_create(&options, &engine, error));
  pagejit_cache_write_spec write_spec;
  pagejit_cache_write_spec_init(&write_spec, sizeof write_spec);
  write_spec.dtype = write_spec.kv_dtype = PAGEJIT_DTYPE_F32;
  write_spec.head_size = kHeadSize;
  pagejit_cache_write_kernel* write = nullptr;
  expect_ok(pagejit_cache_write_kernel_prepare(engine, &write_spec, 0, nullptr, &write, error));
  pagejit_kernel_spec spec;
  pagejit_kernel_spec_init(&spec, sizeof spec);
  spec.q_dtype = spec.kv_dtype = spec.out_dtype = PAGEJIT_DTYPE_F32;
  spec.head_size = kHeadSize;
  spec.group_size = kGroupSize;
  pagejit_kernel* attention = nullptr;
  expect_ok(pagejit_kernel_prepare(engine, &spec, 0, nullptr, &attention, error));
  pagejit_cache_write_args written;
  pagejit_cache_write_args_init(&written, sizeof written);
  fill_cache_write(written, t);
  expect_ok(pagejit_cache_write_kernel_launch(write, &written, nullptr, error));
  pagejit_attention_args args;
  pagejit_attention_args_init(&args, sizeof args);
  fill_attention(args, t);
  expect_ok(pagejit_kernel_launch(attention, &args, nullptr, error));
  ASSERT_TRUE(session->synchronize());
  expect_ok(pagejit_kernel_destroy(attention, error));
  expect_ok(pagejit_cache_write_kernel_destroy(write, error));
  expect_ok(pagejit_engine_destroy(engine, error));
}

TEST_F(CApiEmulatorTest, AttentionAfterACacheWriteGivesTheBytesOfCpp) {
  PAGEJIT_NEEDS(std::system("c++ --version >/dev/null 2>&1") == 0, "C++ compiler");
  Tensors of_cpp(*session);
  Tensors of_c(*session);
  const std::string untouched = Tensors::bytes(of_c.out);
  ASSERT_NO_FATAL_FAILURE(run_cpp(of_cpp));
  ASSERT_NO_FATAL_FAILURE(run_c(of_c));
  EXPECT_TRUE(Tensors::bytes(of_c.k_cache) == Tensors::bytes(of_cpp.k_cache));
  EXPECT_TRUE(Tensors::bytes(of_c.v_cache) == Tensors::bytes(of_cpp.v_cache));
  EXPECT_TRUE(Tensors::bytes(of_c.out) == Tensors::bytes(of_cpp.out));

  // That something was computed: with one key attention would be its value; with these a mean of
  // sines.
  const std::string bytes = Tensors::bytes(of_c.out);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  for (const float number : out) EXPECT_LT(std::abs(number), 1.001f);
  EXPECT_FALSE(bytes == untouched);
}

}  // namespace
}  // namespace pagejit
