// The flags of `pagejit bench`, and its outputs. Thread-safety: plain values and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/engine_flags.h"

namespace pagejit::cli {

struct BenchFlags {
  EngineFlags engine;
  std::string json;
  std::string svg;
  std::vector<std::string> compare;  // none or two
  std::optional<double> threshold;   // percent

  // Whether standard output is taken by a file.
  bool is_quiet() const { return json == "-" || svg == "-"; }
};

// kInvalidArgument.
Status bad_usage(const std::string& message);

// One of two outputs in one place would be lost, or mixed with the other: kInvalidArgument.
Status check_outputs(const BenchFlags& flags);

// Writes the files that are asked for; each that fails is told.
void write_files(const BenchFlags& flags, const std::string& json, const std::string& svg,
                 CommandContext& context);

}  // namespace pagejit::cli
