#include "tools/bench/decode_bench.h"

namespace pagejit {
namespace {

DecodeBenchCase make_case(const std::string& name, int num_seqs, int seq_len, int num_kv_heads,
                          int group_size, int head_size = 128, int block_size = 16) {
  DecodeBenchCase c;
  c.name = name;
  c.spec = {.head_size = head_size, .block_size = block_size, .group_size = group_size};
  c.num_seqs = num_seqs;
  c.num_kv_heads = num_kv_heads;
  c.seq_len = seq_len;
  return c;
}

}  // namespace

std::vector<DecodeBenchCase> decode_cases() {
  std::vector<DecodeBenchCase> cases;
  for (const int num_seqs : {1, 8}) {
    for (const int seq_len : {1024, 4096, 16384, 32768}) {
      cases.push_back(make_case("GQA 32/8", num_seqs, seq_len, 8, 4));
    }
  }
  cases.push_back(make_case("GQA 32/8", 64, 4096, 8, 4));
  cases.push_back(make_case("MHA 32/32", 8, 8192, 32, 1));
  cases.push_back(make_case("MHA 32/32", 1, 32768, 32, 1));
  cases.push_back(make_case("GQA 64/8 (Llama-3.1-70B)", 8, 8192, 8, 8));
  cases.push_back(make_case("GQA 28/4 (Qwen2.5-7B)", 8, 8192, 4, 7));
  cases.push_back(make_case("MQA 71/1 (Falcon-7B)", 8, 8192, 1, 71, 64));
  cases.push_back(make_case("MQA 71/1 (Falcon-7B)", 1, 8192, 1, 71, 64));
  cases.push_back(make_case("MHA 32/32 (Phi-2)", 8, 2048, 32, 1, 80));
  cases.push_back(make_case("GQA 9/3 (SmolLM2-135M)", 32, 2048, 3, 3, 64));
  cases.push_back(make_case("GQA 16/8 (Gemma-2-9B)", 8, 8192, 8, 2, 256));
  return cases;
}

// vLLM's v1 walked a sequence in one pass, its v2 split it: both from the same kernel here, by the
// number of splits.
std::vector<DecodeBenchCase> v1v2_cases() {
  std::vector<DecodeBenchCase> cases;
  for (const int seq_len : {512, 2048, 8192, 32768}) {
    for (const int num_seqs : {1, 16}) {
      DecodeBenchCase one_pass = make_case("one pass", num_seqs, seq_len, 8, 4);
      one_pass.num_splits = 1;
      cases.push_back(one_pass);
      cases.push_back(make_case("split", num_seqs, seq_len, 8, 4));
    }
  }
  return cases;
}

std::vector<DecodeBenchCase> paging_cases() {
  std::vector<DecodeBenchCase> cases;
  for (const auto& [num_seqs, seq_len] : {std::pair(8, 32768), std::pair(32, 4096)}) {
    DecodeBenchCase contiguous = make_case("contiguous", num_seqs, seq_len, 8, 4);
    contiguous.shuffled_blocks = false;
    cases.push_back(contiguous);
    for (const int block_size : {1, 16, 64}) {
      cases.push_back(make_case("block_size " + std::to_string(block_size), num_seqs, seq_len, 8, 4,
                                128, block_size));
    }
  }
  return cases;
}

}  // namespace pagejit
