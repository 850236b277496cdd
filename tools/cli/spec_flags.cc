#include "tools/cli/spec_flags.h"

#include <CLI/CLI.hpp>

#include "tools/cli/word_checks.h"

namespace pagejit::cli {

void add_spec_flags(CLI::App& command, SpecFlags* flags, bool with_models) {
  if (with_models) {
    command
        .add_option("--model,-m", flags->models,
                    "A model's config.json, or the folder that holds it; may be repeated")
        ->type_name("FILE")
        ->group("What");
    command
        .add_option("--tp", flags->tensor_parallel,
                    "GPUs that share the heads (tensor parallelism); of a model also several "
                    "numbers, each by itself")
        ->type_name("N[,N...]")
        ->delimiter(',')
        ->group("What");
  }
  const auto number = [&](const char* name, std::optional<int>* value, const char* help) {
    command.add_option(name, *value, help)->type_name("N")->group("What");
  };
  number("--head-size", &flags->head_size,
         "Elements per head: a multiple of 8 in [8, 256], or 512; with --latent a multiple of 16 "
         "up to "
         "576");
  number(
      "--head-size-v", &flags->head_size_v,
      "Of V and the result: 128 with --head-size 192, 512 with 576; with --latent any multiple of "
      "16 (default: the same)");
  command
      .add_flag("--latent", flags->latent,
                "V is the first --head-size-v elements of K's rows, as in the latent cache of MLA")
      ->group("What");
  number("--block-size", &flags->block_size, "Tokens per KV block (default 16)");
  number("--group-size", &flags->group_size, "Query heads per KV head");
  number("--num-heads", &flags->num_heads,
         "Query heads; with --num-kv-heads instead of --group-size");
  number("--num-kv-heads", &flags->num_kv_heads, "KV heads");
  command
      .add_option("--dtype", flags->dtype,
                  with_models ? "bf16, f16 or f32, instead of the model's (default bf16)"
                              : "bf16, f16 or f32 (default bf16)")
      ->type_name("TYPE")
      ->check(data_type_word())
      ->group("What");
  const auto type = [&](const char* name, std::optional<std::string>* value, const char* help) {
    command.add_option(name, *value, help)
        ->type_name("TYPE")
        ->check(data_type_word())
        ->group("What");
  };
  type("--q-dtype", &flags->q_dtype, "Of q, instead of --dtype: also f32, and fp8 with fp8 KV");
  type("--kv-dtype", &flags->kv_dtype,
       "Of K and V: also fp8_e4m3 (fp8), fp8_e5m2, int8 and int4 with --token-scales, f32 with f32 "
       "q");
  type("--out-dtype", &flags->out_dtype, "Of the result: also f32, and fp8_e4m3 with a scale");
  command
      .add_flag("--token-scales", flags->token_scales,
                "K and V of 8 or 4 bits have a scale for each token and KV head")
      ->group("What");
  number("--kv-alignment", &flags->kv_alignment,
         "Bytes that rows of K and V are aligned to: 16, 8, or 4, as with scales in line (default "
         "16)");
  command
      .add_option("--kv-layout", flags->kv_layout,
                  "rows (any strides), vllm (K [.., head_size/x, block_size, x], V [.., head_size, "
                  "block_size]) or, with --latent, ds_mla (rows of 656 bytes with their scales)")
      ->type_name("LAYOUT")
      ->check(one_of({"rows", "vllm", "ds_mla"}))
      ->group("What");
  command
      .add_option(
          "--queries", flags->queries,
          "Query tokens per sequence that the kernel is for: one (decode), few (speculative "
          "decode), many (prefill), shared (a prefix of several sequences); all but one take any "
          "number (default one)")
      ->type_name("N")
      ->check(one_of({"one", "few", "many", "shared"}))
      ->group("What");
  command
      .add_flag("--causal", flags->causal,
                "Unless --queries is one: a causal mask, aligned to the end of the sequence")
      ->group("What");
  number("--window", &flags->window, "A sliding window of so many keys, the query's own included");
  number("--chunk", &flags->chunk,
         "Chunked-local attention: the keys of the query's own chunk of N");
  command
      .add_option("--block-sparse", flags->block_sparse,
                  "Block-sparse attention: LOCAL blocks, each STRIDE-th one, TOKENS per block "
                  "(default 64), STEP of the offset from head to head (default 0)")
      ->type_name("LOCAL,STRIDE[,TOKENS[,STEP]]")
      ->delimiter(',')
      ->group("What");
  command.add_option("--soft-cap", flags->soft_cap, "Scores become X * tanh(scores / X)")
      ->type_name("X")
      ->group("What");
  command.add_flag("--alibi", flags->alibi, "A bias that is linear in the distance")->group("What");
  command.add_flag("--sinks", flags->sinks, "One more logit per head, without a value")
      ->group("What");
  command.add_flag("--custom-mask", flags->custom_mask, "A bit for each query token and key")
      ->group("What");
  command
      .add_flag("--qq-bias", flags->qq_bias,
                "A bias for the keys that are query tokens of the sequence themselves, as trees of "
                "speculated tokens need it")
      ->group("What");
  command
      .add_flag("--bidirectional-ranges", flags->bidirectional_ranges,
                "Query tokens in a range of positions see all of it, whatever causality and window "
                "say: images, prefixes")
      ->group("What");
  command
      .add_flag("--ranges-within-window", flags->ranges_within_window,
                "With --bidirectional-ranges: but no further than their window or chunk")
      ->group("What");
  command
      .add_flag("--batch-invariant", flags->batch_invariant,
                "With --queries few or many: results do not depend on what else is in the batch")
      ->group("What");
  command
      .add_flag("--debug-checks", flags->debug,
                "Kernels that check every block id, length and the workspace on the device")
      ->group("What");
  command
      .add_flag("--pdl", flags->pdl,
                "Programmatic dependent launch (sm_90 and later): kernels that are brought onto "
                "the GPU while the one before them still runs")
      ->group("What");
}

}  // namespace pagejit::cli
