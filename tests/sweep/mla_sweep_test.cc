// vLLM's tables of attention over latent caches against the float64 reference: test_flashmla.py,
// test_flashinfer_mla_decode.py and test_triton_decode_attention.py, with own random inputs. Of
// FlashMLA's 128 sequences one is served (the kernel's work for one does not depend on the others).
// The rule by which a case passes stands in tools/check/compare.h and is tighter than their
// tolerances. Without --all a sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/sweep/sweep_main.h"
#include "tests/sweep/test_device.h"
#include "tools/reference/random.h"

namespace pagejit {
namespace {

constexpr DataType kF16 = DataType::kFloat16;
constexpr DataType kBF16 = DataType::kBFloat16;
constexpr DataType kE4m3 = DataType::kFloat8E4m3;

struct MlaSweepCase {
  std::string name;
  KernelSpec spec;
  int num_kv_heads = 1;
  std::vector<int> seq_lens;
  std::vector<int> query_lens;  // none where queries are one
};

KernelSpec make_latent(DataType type, int num_heads, int block_size) {
  KernelSpec spec = make_spec(type, 576, block_size, num_heads);
  spec.head_size_v = 512;
  spec.latent = true;
  if (type == kE4m3) spec.out_dtype = kBF16;
  return spec;
}

// The mean length, or with `is_varlen` a length around it as there: normal, half of the mean wide.
int draw_length(SplitMix64& rng, int mean, bool is_varlen, int least) {
  if (!is_varlen) return mean;
  const double drawn = mean + mean / 2.0 * static_cast<double>(rng.normal());
  return std::clamp(static_cast<int>(std::lround(drawn)), least, 2 * mean);
}

// s_q {1, 2}, s_k {4096, 8192, 16384}, 16 to 128 heads, fixed and varying lengths, three types.
void add_flash_mla(std::vector<MlaSweepCase>& cases) {
  SplitMix64 rng(1);
  for (const DataType type : {kBF16, kF16, kE4m3}) {
    for (const int num_queries : {1, 2}) {
      for (const int mean : {4096, 8192, 16384}) {
        for (const int num_heads : {16, 32, 64, 128}) {
          for (const bool is_varlen : {false, true}) {
            MlaSweepCase c;
            c.spec = make_latent(type, num_heads, 64);
            c.seq_lens = {draw_length(rng, mean, is_varlen, num_queries)};
            if (num_queries > 1) {
              c.spec.queries = QueryLengths::kFew;
              c.spec.causality = Causality::kCausal;
              c.query_lens = {num_queries};
            }
            c.name = "flashmla_" + std::string(data_type_name(type)) + "_sq" +
                     std::to_string(num_queries) + "_sk" + std::to_string(mean) + "_h" +
                     std::to_string(num_heads) + (is_varlen ? "_varlen" : "");
            if (run_all() || (mean == 4096 && num_heads == 16)) cases.push_back(c);
          }
        }
      }
    }
  }
}

// 1 to 16 sequences of up to 1,024 tokens, blocks of 32 and 64, 128 heads.
void add_flashinfer_mla(std::vector<MlaSweepCase>& cases) {
  SplitMix64 rng(2);
  for (const int num_seqs : {1, 2, 4, 16}) {
    for (const int block_size : {32, 64}) {
      MlaSweepCase c;
      c.spec = make_latent(kBF16, 128, block_size);
      for (int i = 0; i < num_seqs; ++i) {
        c.seq_lens.push_back(1 + static_cast<int>(rng.below(run_all() ? 1024 : 64)));
      }
      c.name = "flashinfer_b" + std::to_string(num_seqs) + "_page" + std::to_string(block_size);
      if (run_all() || num_seqs <= 2) cases.push_back(c);
    }
  }
}

// 3 and 5 sequences of 1,025 and 1,027 tokens, 32 heads, 32 and 8 KV heads, K of 128, 192 and 576,
// V of 128 and 512, blocks of 1 and 16; a KV head of 576 elements alone holds V too, as MLA has it.
void add_triton_decode(std::vector<MlaSweepCase>& cases) {
  struct Sizes {
    int k;
    int v;
  };
  for (const Sizes sizes : {Sizes{128, 128}, {192, 128}, {576, 512}}) {
    for (const int num_kv_heads : {32, 8, 1}) {
      if (num_kv_heads == 1 && sizes.k != 576) continue;
      for (const int num_seqs : {3, 5}) {
        for (const int length : {1027, 1025}) {
          for (const int block_size : {1, 16}) {
            MlaSweepCase c;
            c.spec = make_spec(kBF16, sizes.k, block_size, 32 / num_kv_heads);
            c.spec.head_size_v = sizes.v;
            c.spec.latent = num_kv_heads == 1;
            c.num_kv_heads = num_kv_heads;
            c.seq_lens.assign(static_cast<size_t>(num_seqs), length);
            c.name = "triton_d" + std::to_string(sizes.k) + "_kv" + std::to_string(num_kv_heads) +
                     "_b" + std::to_string(num_seqs) + "_l" + std::to_string(length) + "_page" +
                     std::to_string(block_size);
            if (run_all() || (num_kv_heads < 32 && num_seqs == 3 && length == 1027)) {
              cases.push_back(c);
            }
          }
        }
      }
    }
  }
}

std::vector<MlaSweepCase> make_cases() {
  std::vector<MlaSweepCase> cases;
  add_flash_mla(cases);
  add_flashinfer_mla(cases);
  add_triton_decode(cases);
  return cases;
}

class MlaSweepTest : public DeviceTest, public testing::WithParamInterface<MlaSweepCase> {};

TEST_P(MlaSweepTest, IsAsCloseToFloat64AsTheNaiveComputation) {
  const MlaSweepCase& c = GetParam();
  CheckOptions options;
  options.batch.num_kv_heads = c.num_kv_heads;
  options.batch.seq_lens = c.seq_lens;
  options.batch.query_lens = c.query_lens;
  expect_passes(c.spec, options);
}

INSTANTIATE_TEST_SUITE_P(All, MlaSweepTest, testing::ValuesIn(make_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pagejit
