// The config.json files of the model tests.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace pagejit::models {

inline std::string data_path(const std::string& name) {
  return std::string(PAGEJIT_MODEL_DATA_DIR) + "/" + name + ".json";
}

inline std::string read_data(const std::string& name) {
  std::ifstream stream(data_path(name), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace pagejit::models
