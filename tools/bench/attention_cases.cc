#include "tools/bench/attention_bench.h"

namespace pagejit {
namespace {

AttentionBenchCase make_case(const std::string& name, int num_seqs, int seq_len, int num_kv_heads,
                             int group_size, int head_size = 128, int block_size = 16) {
  AttentionBenchCase c;
  c.name = name;
  c.spec = {.head_size = head_size, .block_size = block_size, .group_size = group_size};
  c.num_seqs = num_seqs;
  c.num_kv_heads = num_kv_heads;
  c.seq_len = seq_len;
  return c;
}

}  // namespace

std::vector<AttentionBenchCase> decode_cases() {
  std::vector<AttentionBenchCase> cases;
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
std::vector<AttentionBenchCase> v1v2_cases() {
  std::vector<AttentionBenchCase> cases;
  for (const int seq_len : {512, 2048, 8192, 32768}) {
    for (const int num_seqs : {1, 16}) {
      AttentionBenchCase one_pass = make_case("one pass", num_seqs, seq_len, 8, 4);
      one_pass.num_splits = 1;
      cases.push_back(one_pass);
      cases.push_back(make_case("split", num_seqs, seq_len, 8, 4));
    }
  }
  return cases;
}

std::vector<AttentionBenchCase> paging_cases() {
  std::vector<AttentionBenchCase> cases;
  for (const auto& [num_seqs, seq_len] : {std::pair(8, 32768), std::pair(32, 4096)}) {
    AttentionBenchCase contiguous = make_case("contiguous", num_seqs, seq_len, 8, 4);
    contiguous.shuffled_blocks = false;
    cases.push_back(contiguous);
    for (const int block_size : {1, 16, 64}) {
      cases.push_back(make_case("block_size " + std::to_string(block_size), num_seqs, seq_len, 8, 4,
                                128, block_size));
    }
  }
  return cases;
}

// 8 bits of K and V: half of the bytes.
std::vector<AttentionBenchCase> fp8_cases() {
  std::vector<AttentionBenchCase> cases;
  for (const DataType kv : {DataType::kBFloat16, DataType::kFloat8E4m3, DataType::kFloat8E5m2}) {
    AttentionBenchCase c = make_case("KV " + std::string(data_type_name(kv)), 8, 32768, 8, 4);
    c.spec.kv_dtype = kv;
    cases.push_back(c);
  }
  return cases;
}

// Over a latent cache of 512 + 64: a GPU's share of 128 heads among eight, two and one.
std::vector<AttentionBenchCase> mla_cases() {
  std::vector<AttentionBenchCase> cases;
  for (const int num_heads : {16, 64, 128}) {
    for (const int num_seqs : {1, 32, 128}) {
      for (const int seq_len : {4096, 32768}) {
        AttentionBenchCase c = make_case("MLA, " + std::to_string(num_heads) + " heads", num_seqs,
                                         seq_len, 1, num_heads, 576, 64);
        c.spec.head_size_v = 512;
        c.spec.latent = true;
        cases.push_back(c);
        if (num_seqs != 128) continue;
        const std::string name = c.name;
        c.name = name + ", fp8";
        c.spec.kv_dtype = DataType::kFloat8E4m3;
        cases.push_back(c);
        c.name = name + ", rows of 656 bytes";
        c.spec.kv_layout = KvLayout::kDsMla;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

std::vector<AttentionBenchCase> prefill_cases() {
  std::vector<AttentionBenchCase> cases;
  const auto add = [&](const std::string& name, int num_queries, int seq_len, int num_kv_heads,
                       int group_size) {
    AttentionBenchCase c = make_case(name, 0, 0, num_kv_heads, group_size);
    c.spec.queries = QueryLengths::kMany;
    c.spec.causality = Causality::kCausal;
    c.chunk_queries = num_queries;
    c.chunk_seq_len = seq_len;
    cases.push_back(c);
  };
  for (const int tokens : {2048, 16384}) add("prompt, GQA 32/8", tokens, tokens, 8, 4);
  add("prompt, MHA 32/32", 16384, 16384, 32, 1);
  add("chunk behind a cache, GQA 32/8", 2048, 16384, 8, 4);
  return cases;
}

// Decode rows and a chunk of a prompt in one launch, and each alone by the same kernel.
std::vector<AttentionBenchCase> mixed_cases() {
  std::vector<AttentionBenchCase> cases;
  for (const QueryLengths queries : {QueryLengths::kMany, QueryLengths::kFew}) {
    AttentionBenchCase both = make_case("decode + chunk", 64, 4096, 8, 4);
    both.spec.queries = queries;
    both.spec.causality = Causality::kCausal;
    both.chunk_queries = 2048;
    both.chunk_seq_len = 8192;
    cases.push_back(both);
    AttentionBenchCase decode = both;
    decode.name = "decode alone";
    decode.chunk_queries = decode.chunk_seq_len = 0;
    cases.push_back(decode);
    AttentionBenchCase chunk = both;
    chunk.name = "chunk alone";
    chunk.num_seqs = chunk.seq_len = 0;
    cases.push_back(chunk);
  }
  return cases;
}

}  // namespace pagejit
