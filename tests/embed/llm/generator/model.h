// Model: what set-up has made of a model's file: its shape, its weights (mapped, not read), its
// vocabulary and its prompts. python/prepare_model.py says what the files hold. Thread-safety:
// const access from several threads is safe.
#pragma once

#include <pagejit/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llm {

// bf16 [rows, columns] in row-major order, as the upper halves of floats.
struct Matrix {
  const uint16_t* data = nullptr;
  size_t rows = 0;
  size_t columns = 0;
};

// f32; null where the model has no such tensor.
struct Vector {
  const float* data = nullptr;
  size_t size = 0;
};

struct Layer {
  Vector attention_norm, query_norm, key_norm, attention_post_norm;
  Matrix query, key, value, output;
  Vector feed_forward_norm, feed_forward_post_norm;
  Matrix gate, up, down;
  int window = 0;  // tokens that a query sees, its own included; 0: all
  double rope_base = 0;
};

class Model {
 public:
  // kNotFound, kDataCorrupt.
  static pagejit::Result<Model> open(const std::string& folder);

  size_t width = 0, hidden = 0;
  int num_heads = 0, num_kv_heads = 0, head_size = 0;
  bool rotates_neighbours =
      false;              // elements 2 i and 2 i + 1 turn together, not i and i + size / 2
  bool has_gelu = false;  // gelu in its form with tanh, else silu
  float embedding_scale = 1, attention_scale = 1, norm_epsilon = 0;
  int32_t end_token = -1;
  std::vector<Layer> layers;
  Matrix embedding, unembedding;
  Vector final_norm;
  std::vector<std::vector<int32_t>> prompts;

  size_t vocabulary_size() const { return embedding.rows; }
  // The bytes that a token stands for; "" of an id that is none.
  std::string_view piece(int32_t token) const;

 private:
  Model() = default;
  pagejit::Status read_facts(const std::string& path);
  pagejit::Status read_vocabulary(const std::string& path);
  pagejit::Status read_prompts(const std::string& path);
  pagejit::Status find_tensors();
  pagejit::Result<Matrix> matrix(const std::string& name, size_t rows, size_t columns) const;
  pagejit::Result<Vector> vector(const std::string& name, size_t size, bool is_optional) const;

  struct Place {
    std::string type;
    size_t rows = 0, columns = 0, offset = 0;
  };
  std::unordered_map<std::string, Place> places_;
  std::shared_ptr<const char> weights_;  // the mapped file
  size_t weights_bytes_ = 0;
  std::vector<uint32_t> piece_ends_;
  std::string pieces_;
};

}  // namespace llm
