// The arithmetic of a transformer that is not attention, on the processor: products with bf16
// matrices, norms, activations, conversions. Rows of tokens follow each other in f32.
// Thread-safety: a Workers is used by one thread; the functions without one are pure.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "model.h"

namespace llm {

// Threads that share a loop. The calling thread takes part.
class Workers {
 public:
  explicit Workers(unsigned num_threads);
  ~Workers();

  // Calls body(begin, end) for parts of [0, count), one per thread, and waits for all of them.
  void split(size_t count, const std::function<void(size_t begin, size_t end)>& body);

 private:
  void run(size_t index);
  void take_part(size_t index) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(size_t, size_t)>* body_ = nullptr;
  size_t count_ = 0;
  size_t num_parts_ = 1;
  size_t num_running_ = 0;
  uint64_t round_ = 0;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

// y[token][row] = sum over c of matrix[row][c] * x[token][c], for every token of x.
void multiply(Workers& workers, const Matrix& matrix, const std::vector<float>& x,
              std::vector<float>& y);

// Each row of weight.size elements divided by its root mean square, then times the weight.
void rms_norm(const Vector& weight, float epsilon, const std::vector<float>& x,
              std::vector<float>& y);

// gate[i] = activation(gate[i]) * up[i]
void gate_with(bool has_gelu, const std::vector<float>& up, std::vector<float>& gate);

// Row `row` of a matrix, times `scale`, appended to `to`.
void append_row(const Matrix& matrix, size_t row, float scale, std::vector<float>& to);

// Rounded to nearest even.
void to_bf16(const std::vector<float>& from, std::vector<uint16_t>& to);

}  // namespace llm
