// Kernels as sm_75 has them, with one stage: on the emulator, which claims to be such a GPU here,
// or on one. Its device functions below the kernel text are tests/templates' matter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/planner.h"
#include "tests/sweep/cache_ops_batch.h"
#include "tests/sweep/cache_write_batch.h"
#include "tests/sweep/edited_engine.h"
#include "tests/sweep/merge_batch.h"
#include "tests/sweep/mla_cache_batch.h"
#include "tests/sweep/test_device.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kF32 = DataType::kFloat32;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;
constexpr DataType kE5m2 = DataType::kFloat8E5m2;

// Before the driver is opened.
const int kEnvironmentSet = setenv("PAGEJIT_EMULATOR_SM", "75", 1);

KernelSpec make_ragged(QueryLengths queries, int head_size, int group_size) {
  return make_ragged_spec(queries, Causality::kCausal, kF16, head_size, group_size);
}

class TuringTest : public DeviceTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(kEnvironmentSet, 0);
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Result<Target> target = engine().target_of_device(0);
    ASSERT_TRUE(target.is_ok()) << target.status().to_string();
    if (device().emulator == nullptr && target->sm != 75) {
      GTEST_SKIP() << "this GPU is no sm_75";
    }
    ASSERT_EQ(target->sm, 75);
  }

  // What is wrong with a launch of the engine's kernel; empty where all is right.
  std::string check(Engine& engine_to_use, const KernelSpec& spec, int num_splits = 3) {
    CheckOptions options;
    options.batch.num_kv_heads = 2;
    options.batch.seq_lens = {40, 0, 300, 17};
    if (spec.queries != QueryLengths::kOne) options.batch.query_lens = {3, 2, 45, 17};
    options.batch.window_left = 21;
    options.batch.layout = CacheLayout::kPadded;
    options.batch.per_head_scales = true;
    options.num_splits = num_splits;
    const Result<CheckReport> result = run_check(engine_to_use, session(), spec, options);
    if (!result) return result.status().to_string() + result.status().detail() + report();
    return result->passed ? "" : result->sentence;
  }

  void expect_right(const KernelSpec& spec) {
    const Result<KernelConfig> config = plan(spec, Target::host(75));
    ASSERT_TRUE(config.is_ok()) << config.status().to_string();
    EXPECT_EQ(config->attention.num_stages, 1);
    for (const int num_splits : {1, 3}) {
      EXPECT_EQ(check(engine(), spec, num_splits), "") << canonical_text(spec);
    }
  }
};

TEST_F(TuringTest, DecodeIsRightForEveryHeadSize) {
  constexpr int kGroups[] = {1, 4, 7, 16, 40};
  int number = 0;
  for (const int head_size : {8, 16, 40, 64, 72, 80, 96, 112, 120, 128, 160, 192, 256}) {
    expect_right(make_spec(kF16, head_size, number % 2 == 0 ? 16 : 5, kGroups[number % 5]));
    ++number;
  }
}

TEST_F(TuringTest, RaggedQueriesAreRight) {
  for (const QueryLengths queries : {QueryLengths::kFew, QueryLengths::kMany}) {
    for (const int head_size : {64, 72, 128, 256}) {
      expect_right(make_ragged(queries, head_size, 4));
    }
    KernelSpec all = make_ragged(queries, 64, 3);
    all.causality = Causality::kPerSequence;
    all.window = all.custom_mask = all.soft_cap = all.alibi = all.sinks = true;
    expect_right(all);
  }
}

TEST_F(TuringTest, OtherTypesAndLayoutsAreRight) {
  for (const DataType kv : {kF16, kE4m3, kE5m2}) {
    for (const DataType q : {kF16, kBF16, kF32}) {
      for (const DataType out : {kF16, kBF16, kF32}) {
        KernelSpec spec = make_spec(kv, 64, 16, 4);
        spec.q_dtype = q;
        spec.out_dtype = out;
        if (validate(spec)) expect_right(spec);
      }
    }
    KernelSpec vllm = make_spec(kv, 80, 24, 2);
    vllm.q_dtype = vllm.out_dtype = kF16;
    vllm.kv_layout = KvLayout::kVllm;
    expect_right(vllm);
  }
}

// By arithmetic on bits, as everywhere below sm_89: of V it reaches its own element of its own
// heads, of K all of their row.
TEST_F(TuringTest, TheCodesOfNanOf8BitFloatsStayNan) {
  constexpr int kSeq = 1;
  constexpr int kToken = 37;
  constexpr int kKvHead = 1;
  constexpr int kElement = 21;
  const std::pair<DataType, uint32_t> codes[] = {
      {kE4m3, 0x7f}, {kE4m3, 0xff}, {kE5m2, 0x7d}, {kE5m2, 0xff}};
  for (const auto& [type, code] : codes) {
    KernelSpec spec = make_spec(type, 64, 16, 4);
    spec.q_dtype = spec.out_dtype = kF16;
    const Kernel kernel = prepare(spec);
    ASSERT_TRUE(kernel);
    BatchOptions options;
    options.spec = spec;
    options.num_kv_heads = 2;
    options.seq_lens = {20, 61};
    for (const bool is_key : {true, false}) {
      AttentionBatch batch = make_batch(options);
      const KvPlace& place = is_key ? batch.k_place : batch.v_place;
      const int64_t block = batch.block_table[kSeq * batch.block_table_stride + kToken / 16];
      batch.allocations[place.allocation].data.set_code(
          place.offset + block * place.strides.block + kToken % 16 * place.strides.token +
              kKvHead * place.strides.head + place.element_offset(kElement),
          code);
      Result<DeviceBatch> device_batch = DeviceBatch::upload(session(), batch, true);
      ASSERT_TRUE(device_batch.is_ok()) << device_batch.status().to_string();
      AttentionArgs args = device_batch->args();
      args.num_splits = 1;
      ASSERT_TRUE(kernel.launch(args, nullptr).is_ok());
      ASSERT_TRUE(session().synchronize().is_ok()) << report();
      const Result<AttentionResults> results = device_batch->download();
      ASSERT_TRUE(results.is_ok());
      for (int seq = 0; seq < 2; ++seq) {
        for (int head = 0; head < batch.num_heads; ++head) {
          for (int i = 0; i < 64; ++i) {
            const bool is_reached = seq == kSeq && head / 4 == kKvHead && (is_key || i == kElement);
            EXPECT_EQ(std::isnan(results->out.at(batch.out_index(seq, head) + i)), is_reached)
                << data_type_name(type) << " " << code << (is_key ? " in K" : " in V")
                << ", sequence " << seq << ", head " << head << ", element " << i;
          }
        }
      }
    }
  }
}

TEST_F(TuringTest, KernelsAroundAttentionAreRight) {
  for (const DataType type : {kF16, kBF16, kF32}) {
    EXPECT_EQ(check_merge(engine(), session(), {.spec = {type, type, 72}}), "") << report();
    CacheWriteSpec write{.dtype = type,
                         .kv_dtype = kE4m3,
                         .scale = KvScale::kHead,
                         .rope = RopeStyle::kNeox,
                         .rotary_dim = 64};
    EXPECT_EQ(check_cache_write(engine(), session(), {.spec = write, .num_q_heads = 3}), "")
        << report();
    const MlaCacheWriteSpec latent{
        .dtype = type, .format = MlaFormat::kE4m3, .rope = RopeStyle::kInterleaved};
    EXPECT_EQ(check_mla_cache_write(engine(), session(), {.spec = latent, .num_q_heads = 3}), "")
        << report();
    const GatherCacheSpec gather{.kv_dtype = kE4m3, .out_dtype = type, .scale = KvScale::kTensor};
    EXPECT_EQ(check_gather_cache(engine(), session(), {.spec = gather}), "") << report();
    EXPECT_EQ(check_convert_float8(engine(), session(), {kE5m2, type}, 0.75f), "") << report();
    EXPECT_EQ(check_convert_float8(engine(), session(), {type, kE4m3}, 0.75f), "") << report();
  }
}

// Races of the one stage show in the checked build; what is not waited for shows where copies come
// late.
class TuringEmulatorTest : public OnEmulator<TuringTest> {
 protected:
  static std::vector<KernelSpec> specs() {
    return {make_spec(kF16, 128, 16, 4), make_spec(kF16, 64, 16, 71),
            make_ragged(QueryLengths::kMany, 128, 4)};
  }

  // An engine of the checked build whose kernels have `to` in place of `from`.
  std::shared_ptr<Engine> make_engine(const std::string& from, const std::string& to) {
    EngineOptions options = device().options;
    options.host_build = HostBuild::kChecked;
    return make_edited_engine(options, {"attention/attend.cuh", from, to});
  }
};

TEST_F(TuringEmulatorTest, TheCheckedBuildFindsNoRaces) {
  for (const auto completion : {kPagejitEmulatorLate, kPagejitEmulatorEarly}) {
    device().emulator->set_schedule(kPagejitEmulatorRandom, completion, 5);
    for (const KernelSpec& spec : specs()) {
      EXPECT_EQ(check(checked_engine(), spec), "") << canonical_text(spec);
    }
  }
}

TEST_F(TuringEmulatorTest, EachMissingWaitOrBarrierIsFound) {
  const std::string k_wait = "dev::cp_async_wait<1>();     // all but V of this tile\n";
  const std::string k_barrier =
      "    sync_group(token_group);  // K of this tile is there for all warps\n#endif";
  const std::string refill_barrier =
      "sync_group(token_group);  // all warps are done with the tile before\n";
  const std::string v_wait = "    dev::cp_async_wait<2 * (kStages - 1)>();\n";
  const std::pair<std::string, std::string> bugs[] = {
      {k_wait, "\n"}, {k_barrier, "#endif"}, {refill_barrier, "\n"}, {v_wait, ""}};
  for (const auto& [from, to] : bugs) {
    const std::shared_ptr<Engine> bugged = make_engine(from, to);
    ASSERT_NE(bugged, nullptr);
    std::string found;
    for (const KernelSpec& spec : specs()) {
      if (found.empty()) found = check(*bugged, spec);
    }
    EXPECT_NE(found, "") << from;
  }
}

}  // namespace
}  // namespace pagejit
