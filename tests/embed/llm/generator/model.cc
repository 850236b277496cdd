#include "model.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace llm {

using pagejit::Result;
using pagejit::Status;
using pagejit::StatusCode;

namespace {

Status corrupt(const std::string& what) { return Status(StatusCode::kDataCorrupt, what); }

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, path + " (tests/embed/llm/setup.sh makes it)");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

template <class T>
std::vector<T> read_values(std::istream& line) {
  return std::vector<T>(std::istream_iterator<T>(line), {});
}

}  // namespace

Result<Model> Model::open(const std::string& folder) {
  Model model;
  const std::string path = folder + "/weights.bin";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (file < 0 || fstat(file, &facts) != 0) {
    return Status(StatusCode::kNotFound, path + " (tests/embed/llm/setup.sh makes it)");
  }
  model.weights_bytes_ = static_cast<size_t>(facts.st_size);
  void* mapped = mmap(nullptr, model.weights_bytes_, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return corrupt(path + " cannot be mapped");
  const auto unmap = [bytes = model.weights_bytes_](const char* begin) {
    munmap(const_cast<char*>(begin), bytes);
  };
  model.weights_ = std::shared_ptr<const char>(static_cast<const char*>(mapped), unmap);

  Status status = model.read_facts(folder + "/model.txt");
  if (status) status = model.find_tensors();
  if (status) status = model.read_vocabulary(folder + "/vocabulary.bin");
  if (status) status = model.read_prompts(folder + "/prompts.txt");
  if (!status) return status;
  return model;
}

Status Model::read_facts(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text.status();
  std::istringstream lines(*text);
  std::vector<int> windows;
  std::vector<double> bases;
  size_t num_layers = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream rest(line);
    std::string key, word;
    rest >> key;
    if (key == "tensor") {
      Place place;
      rest >> word >> place.type >> place.rows >> place.columns >> place.offset;
      if (!rest) return corrupt(path + ": " + line);
      places_.emplace(word, place);
    }
    if (key == "layers") rest >> num_layers;
    if (key == "width") rest >> width;
    if (key == "hidden") rest >> hidden;
    if (key == "heads") rest >> num_heads;
    if (key == "kv_heads") rest >> num_kv_heads;
    if (key == "head_size") rest >> head_size;
    if (key == "embedding_scale") rest >> embedding_scale;
    if (key == "attention_scale") rest >> attention_scale;
    if (key == "norm_epsilon") rest >> norm_epsilon;
    if (key == "end_token") rest >> end_token;
    if (key == "rope") rotates_neighbours = rest >> word && word == "interleaved";
    if (key == "activation") has_gelu = rest >> word && word == "gelu_tanh";
    if (key == "window") windows = read_values<int>(rest);
    if (key == "rope_base") bases = read_values<double>(rest);
  }
  if (num_layers == 0 || width == 0 || hidden == 0 || num_heads <= 0 || num_kv_heads <= 0 ||
      head_size <= 0 || num_heads % num_kv_heads != 0) {
    return corrupt(path + ": a number of the model's shape is missing or impossible");
  }
  if (windows.size() != num_layers || bases.size() != num_layers) {
    return corrupt(path + ": not one window and rope base for each layer");
  }
  layers.resize(num_layers);
  for (size_t i = 0; i < num_layers; ++i) {
    layers[i].window = windows[i];
    layers[i].rope_base = bases[i];
  }
  return {};
}

Result<Matrix> Model::matrix(const std::string& name, size_t rows, size_t columns) const {
  const auto found = places_.find(name + ".weight");
  if (found == places_.end()) return corrupt("tensor " + name + " is missing");
  const Place& place = found->second;
  // multiply() takes the columns by eight.
  if (place.type != "bf16" || place.columns != columns || columns % 8 != 0 ||
      (rows != 0 && place.rows != rows) ||
      place.offset + 2 * place.rows * columns > weights_bytes_) {
    return corrupt("tensor " + name + " has another shape than the model");
  }
  return Matrix{reinterpret_cast<const uint16_t*>(weights_.get() + place.offset), place.rows,
                columns};
}

Result<Vector> Model::vector(const std::string& name, size_t size, bool is_optional) const {
  const auto found = places_.find(name + ".weight");
  if (found == places_.end() && is_optional) return Vector{};
  if (found == places_.end()) return corrupt("tensor " + name + " is missing");
  const Place& place = found->second;
  if (place.type != "f32" || place.rows != 1 || place.columns != size ||
      place.offset + 4 * size > weights_bytes_) {
    return corrupt("tensor " + name + " has another shape than the model");
  }
  return Vector{reinterpret_cast<const float*>(weights_.get() + place.offset), size};
}

Status Model::find_tensors() {
  Status status;  // the first failure
  const auto put = [&status](auto& target, auto found) {
    if (!found && status) status = found.status();
    if (found) target = *found;
  };
  const auto heads = static_cast<size_t>(head_size);
  const size_t query_width = heads * static_cast<size_t>(num_heads);
  const size_t kv_width = heads * static_cast<size_t>(num_kv_heads);
  constexpr bool kOptional = true;
  put(embedding, matrix("token_embd", 0, width));  // as many rows as the vocabulary has
  const bool is_tied = !places_.contains("output.weight");
  put(unembedding, matrix(is_tied ? "token_embd" : "output", embedding.rows, width));
  put(final_norm, vector("output_norm", width, false));
  for (size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers[i];
    const std::string prefix = "blk." + std::to_string(i) + ".";
    put(layer.attention_norm, vector(prefix + "attn_norm", width, false));
    put(layer.query_norm, vector(prefix + "attn_q_norm", heads, kOptional));
    put(layer.key_norm, vector(prefix + "attn_k_norm", heads, kOptional));
    put(layer.attention_post_norm, vector(prefix + "post_attention_norm", width, kOptional));
    put(layer.feed_forward_norm, vector(prefix + "ffn_norm", width, false));
    put(layer.feed_forward_post_norm, vector(prefix + "post_ffw_norm", width, kOptional));
    put(layer.query, matrix(prefix + "attn_q", query_width, width));
    put(layer.key, matrix(prefix + "attn_k", kv_width, width));
    put(layer.value, matrix(prefix + "attn_v", kv_width, width));
    put(layer.output, matrix(prefix + "attn_output", width, query_width));
    put(layer.gate, matrix(prefix + "ffn_gate", hidden, width));
    put(layer.up, matrix(prefix + "ffn_up", hidden, width));
    put(layer.down, matrix(prefix + "ffn_down", width, hidden));
  }
  return status;
}

Status Model::read_vocabulary(const std::string& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) return bytes.status();
  uint32_t count = 0;
  if (bytes->size() >= sizeof(count)) std::memcpy(&count, bytes->data(), sizeof(count));
  const size_t header = sizeof(count) * (size_t{count} + 1);
  if (count == 0 || bytes->size() < header) return corrupt(path);
  piece_ends_.resize(count);
  std::memcpy(piece_ends_.data(), bytes->data() + sizeof(count), header - sizeof(count));
  pieces_ = bytes->substr(header);
  if (!std::is_sorted(piece_ends_.begin(), piece_ends_.end()) ||
      piece_ends_.back() != pieces_.size()) {
    return corrupt(path);
  }
  return {};
}

std::string_view Model::piece(int32_t token) const {
  const auto i = static_cast<size_t>(token);
  if (token < 0 || i >= piece_ends_.size()) return {};
  const size_t begin = i == 0 ? 0 : piece_ends_[i - 1];
  return std::string_view(pieces_).substr(begin, piece_ends_[i] - begin);
}

Status Model::read_prompts(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return text.status();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    prompts.push_back(read_values<int32_t>(words));
    for (const int32_t token : prompts.back()) {
      if (token < 0 || static_cast<size_t>(token) >= vocabulary_size()) {
        return corrupt(path + ": token " + std::to_string(token));
      }
    }
    if (prompts.back().empty()) return corrupt(path + ": an empty prompt");
  }
  if (prompts.size() != 2) return corrupt(path + ": not two prompts");
  return {};
}

}  // namespace llm
