// A small text generator: a GGUF model's forward pass on the processor, its attention and KV cache
// by pagejit. Prints what it generates, and writes the logits for python/reference.py to compare.
//
//   llm_generator MODEL_FOLDER RUN_FOLDER [--tokens N] [--chunk N] [--threads N] [--cascade]
//                 [--break block-table]
//
// Exit 0: generated, and as many kernels were launched as layers and steps need; 1: not; 2: usage.
#include <pagejit/engine.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "attention_layers.h"
#include "device.h"
#include "generation.h"
#include "model.h"
#include "transformer.h"

namespace llm {
namespace {

using pagejit::Result;
using pagejit::Status;
using pagejit::StatusCode;

struct Arguments {
  std::string model_folder, run_folder;
  GenerationOptions generation;
  unsigned num_threads = std::thread::hardware_concurrency();
  bool uses_cascade = false;
};

bool parse_count(std::string_view text, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

bool parse(int argc, char** argv, Arguments& arguments) {
  size_t num_threads = arguments.num_threads;
  bool is_legal = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--cascade") {
      arguments.uses_cascade = true;
    } else if (word == "--tokens") {
      is_legal = is_legal && parse_count(next, arguments.generation.num_tokens), ++i;
    } else if (word == "--chunk") {
      is_legal = is_legal && parse_count(next, arguments.generation.chunk), ++i;
    } else if (word == "--threads") {
      is_legal = is_legal && parse_count(next, num_threads), ++i;
    } else if (word == "--break") {
      is_legal = is_legal && next == "block-table", ++i;
      arguments.generation.breaks_block_table = true;
    } else if (arguments.model_folder.empty()) {
      arguments.model_folder = word;
    } else if (arguments.run_folder.empty()) {
      arguments.run_folder = word;
    } else {
      is_legal = false;
    }
  }
  arguments.num_threads = static_cast<unsigned>(num_threads);
  return is_legal && !arguments.run_folder.empty();
}

// Up to the end of the answer. (Tokens are generated behind it too: there are always as many to
// compare.)
std::string text_of(const Model& model, const Sequence& sequence) {
  std::string text;
  for (size_t i = sequence.prompt_length; i < sequence.tokens.size(); ++i) {
    if (sequence.tokens[i] == model.end_token) break;
    text += model.piece(sequence.tokens[i]);
  }
  return text;
}

// run.txt: the prompt's ids and the chosen ones, in turn; logits.bin: f32, as in Generation.
Status write_run(const std::string& folder, const Generation& generation) {
  std::ofstream run(folder + "/run.txt");
  for (const Sequence& sequence : generation.sequences) {
    for (size_t i = 0; i < sequence.tokens.size(); ++i) {
      if (i == 0) run << "prompt";
      if (i == sequence.prompt_length) run << "\nchosen";
      run << ' ' << sequence.tokens[i];
    }
    run << '\n';
  }
  std::ofstream logits(folder + "/logits.bin", std::ios::binary);
  logits.write(reinterpret_cast<const char*>(generation.logits.data()),
               static_cast<std::streamsize>(generation.logits.size() * sizeof(float)));
  run.close();
  logits.close();
  if (run && logits) return {};
  return Status(StatusCode::kNotFound, folder + " cannot be written to");
}

// One write and one attention for each layer and forward pass, and no other launch but copies.
Status check_counts(const Model& model, const Generation& generation, const LaunchCounts& counts,
                    std::optional<uint64_t> emulated) {
  const uint64_t layers = model.layers.size();
  const uint64_t steps = generation.prefill_steps + generation.decode_steps;
  const uint64_t launches =
      counts.cache_writes + counts.prefills + counts.decodes + 3 * counts.cascades + counts.copies;
  std::printf(
      "launches: %llu cache writes, %llu prefills, %llu decodes, %llu cascades, %llu copies; "
      "%llu layers, %llu + %llu steps",
      static_cast<unsigned long long>(counts.cache_writes),
      static_cast<unsigned long long>(counts.prefills),
      static_cast<unsigned long long>(counts.decodes),
      static_cast<unsigned long long>(counts.cascades),
      static_cast<unsigned long long>(counts.copies), static_cast<unsigned long long>(layers),
      static_cast<unsigned long long>(generation.prefill_steps),
      static_cast<unsigned long long>(generation.decode_steps));
  if (emulated) {
    std::printf("; the emulator counted %llu", static_cast<unsigned long long>(*emulated));
  }
  std::printf("\n");
  if (counts.cache_writes == layers * steps &&
      counts.prefills == layers * generation.prefill_steps &&
      counts.decodes + counts.cascades == layers * generation.decode_steps && counts.copies <= 1 &&
      emulated.value_or(launches) == launches) {
    return {};
  }
  return Status(StatusCode::kInternal, "the launches are not layers times steps");
}

Status run(const Arguments& arguments) {
  const auto options = pagejit::EngineOptions::from_environment();
  if (!options) return options.status();
  const auto model = Model::open(arguments.model_folder);
  if (!model) return model.status();
  const auto device = Device::open(*options);
  if (!device) return device.status();
  const auto engine = pagejit::Engine::create(*options);
  if (!engine) return engine.status();

  AttentionLayers::Limits limits;
  limits.max_sequences = model->prompts.size();
  limits.max_tokens = std::max(arguments.generation.chunk, limits.max_sequences);
  for (const auto& prompt : model->prompts) {
    const size_t length = prompt.size() + arguments.generation.num_tokens;
    limits.max_length = std::max(limits.max_length, length);
    limits.num_blocks += static_cast<int>(length / kBlockSize) + 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto attention =
      AttentionLayers::create(**engine, *device, *model, limits, arguments.uses_cascade);
  if (!attention) return attention.status();
  const std::chrono::duration<double> prepared = std::chrono::steady_clock::now() - begin;

  Transformer transformer(*model, **attention, arguments.num_threads);
  BlockPool pool(limits.num_blocks);
  const auto before = (*device)->emulated_launches();
  const auto generation = generate(*model, **attention, transformer, pool, arguments.generation);
  if (!generation) return generation.status();
  auto emulated = (*device)->emulated_launches();
  if (emulated) *emulated -= *before;

  for (const Sequence& sequence : generation->sequences) {
    std::printf("prompt of %zu tokens, generated: %s\n", sequence.prompt_length,
                text_of(*model, sequence).c_str());
  }
  std::printf("reused: %zu tokens of the second prompt\n", generation->num_reused);
  std::printf("time: kernels ready in %.2f s, attention and copies %.2f s, the rest %.2f s\n",
              prepared.count(), transformer.attention_time.count(), transformer.other_time.count());
  const Status status = write_run(arguments.run_folder, *generation);
  if (!status) return status;
  return check_counts(*model, *generation, (*attention)->counts(), emulated);
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  llm::Arguments arguments;
  if (!llm::parse(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: llm_generator MODEL_FOLDER RUN_FOLDER [--tokens N] [--chunk N] "
                 "[--threads N] [--cascade] [--break block-table]\n");
    return 2;
  }
  const pagejit::Status status = llm::run(arguments);
  if (status) return 0;
  std::fprintf(stderr, "error: %s\n", status.to_string().c_str());
  return 1;
}
