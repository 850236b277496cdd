// The config.json files of tools/models/configs, held in the program so that it needs no folder
// beside it. Thread-safety: constant data.
#pragma once

#include <span>
#include <string_view>

namespace pagejit::cli {

struct ShippedModel {
  std::string_view name;    // of the file, without .json
  std::string_view config;  // its text
};

std::span<const ShippedModel> shipped_models();

}  // namespace pagejit::cli
