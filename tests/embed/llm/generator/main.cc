// A small text generator: a GGUF model's forward pass on the processor, its attention and KV cache
// by pagejit. Prints what it generates, and writes the logits for python/reference.py to compare.
//
//   llm_generator MODEL_FOLDER RUN_FOLDER [--tokens N] [--chunk N] [--threads N] [--cascade]
//                 [--break block-table|sharing|launches|counts]
//
// Exit 0: generated; as many kernels were launched as layers and steps need, and the second prompt
// took from the first what both begin with; 1: it could not be run; 2: usage; 3: a check failed,
// and a line "FAILED: ..." says which.
#include <pagejit/engine.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

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

bool parse_fault(std::string_view name, Fault& fault) {
  static constexpr std::pair<std::string_view, Fault> kFaults[] = {
      {"block-table", Fault::kBlockTable},
      {"sharing", Fault::kSharing},
      {"launches", Fault::kLaunches},
      {"counts", Fault::kCounts}};
  const auto* found = std::ranges::find(kFaults, name, &std::pair<std::string_view, Fault>::first);
  if (found == std::end(kFaults)) return false;
  fault = found->second;
  return true;
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
      is_legal = is_legal && parse_fault(next, arguments.generation.fault), ++i;
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
bool check_counts(const Model& model, const Generation& generation, const LaunchCounts& counts,
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
  const bool are_right = counts.cache_writes == layers * steps &&
                         counts.prefills == layers * generation.prefill_steps &&
                         counts.decodes + counts.cascades == layers * generation.decode_steps;
  const bool are_all = emulated.value_or(launches) == launches;
  if (!are_right) std::printf("FAILED: the launches are not layers times steps\n");
  if (!are_all) std::printf("FAILED: the emulator counted other launches than the calls\n");
  return are_right && are_all;
}

// Everything that both prompts begin with is computed and stored once, but for the block that they
// share in part, of which there is one copy. What is to be expected follows from the prompts alone.
bool check_sharing(const Model& model, const Generation& generation, const LaunchCounts& counts) {
  const std::vector<int32_t>&first = model.prompts[0], &second = model.prompts[1];
  const auto [end, other_end] =
      std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  // The last token's logits are wanted, so it is computed in any case.
  const size_t alike = std::min(static_cast<size_t>(end - first.begin()), second.size() - 1);
  const size_t decoded = generation.sequences.size() * generation.decode_steps;
  const size_t computed = counts.written_tokens / model.layers.size() - decoded;
  std::printf(
      "sharing: the prompts begin with %zu tokens alike; reused %zu, in %zu blocks of both and "
      "%llu "
      "copied; computed %zu of %zu tokens of the prompts\n",
      alike, generation.num_reused, generation.num_shared,
      static_cast<unsigned long long>(counts.copies), computed, first.size() + second.size());
  const uint64_t num_partial = alike % kBlockSize == 0 ? 0 : 1;
  if (alike >= kBlockSize && generation.num_reused == alike &&
      generation.num_shared == alike / kBlockSize && counts.copies == num_partial &&
      computed == first.size() + second.size() - alike) {
    return true;
  }
  std::printf("FAILED: the second prompt does not share what it begins with\n");
  return false;
}

// Whether all checks passed.
Result<bool> run(const Arguments& arguments) {
  const auto options = pagejit::EngineOptions::from_environment();
  if (!options) return options.status();
  const auto model = Model::open(arguments.model_folder);
  if (!model) return model.status();
  if (model->prompts.size() != 2) {
    return Status(StatusCode::kInvalidArgument, "the model's folder must have two prompts");
  }
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
  std::printf("time: kernels ready in %.2f s, attention and copies %.2f s, the rest %.2f s\n",
              prepared.count(), transformer.attention_time.count(), transformer.other_time.count());
  const Status status = write_run(arguments.run_folder, *generation);
  if (!status) return status;
  const LaunchCounts& counts = (*attention)->counts();
  const bool are_counts_right = check_counts(*model, *generation, counts, emulated);
  return check_sharing(*model, *generation, counts) && are_counts_right;
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  llm::Arguments arguments;
  if (!llm::parse(argc, argv, arguments)) {
    std::fprintf(stderr,
                 "usage: llm_generator MODEL_FOLDER RUN_FOLDER [--tokens N] [--chunk N] "
                 "[--threads N] [--cascade] [--break block-table|sharing|launches|counts]\n");
    return 2;
  }
  const pagejit::Result<bool> has_passed = llm::run(arguments);
  if (has_passed) return *has_passed ? 0 : 3;
  std::fprintf(stderr, "error: %s\n", has_passed.status().to_string().c_str());
  return 1;
}
