#include "tensor_math.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace llm {
namespace {

// Eight floats at a time, on any processor: compilers make of it what their target has.
constexpr size_t kLanes = 8;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

float widened(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << 16); }

// y[t] = row . x[t] for kTokens rows of x, so that each element of the matrix is used as often as
// there are registers for.
template <size_t kTokens>
void dot_products(const float* row, size_t columns, const float* x, float* y, size_t y_stride) {
  Lanes sums[kTokens] = {};
  for (size_t c = 0; c < columns; c += kLanes) {
    Lanes weights;
    std::memcpy(&weights, row + c, sizeof(weights));
    for (size_t t = 0; t < kTokens; ++t) {
      Lanes values;
      std::memcpy(&values, x + t * columns + c, sizeof(values));
      sums[t] += weights * values;
    }
  }
  for (size_t t = 0; t < kTokens; ++t) {
    float sum = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[t][lane];
    y[t * y_stride] = sum;
  }
}

}  // namespace

Workers::Workers(unsigned num_threads) : num_parts_(num_threads == 0 ? 1 : num_threads) {
  for (size_t i = 1; i < num_parts_; ++i) threads_.emplace_back([this, i] { run(i); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::split(size_t count, const std::function<void(size_t, size_t)>& body) {
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    num_running_ = threads_.size();
    ++round_;
  }
  changed_.notify_all();
  take_part(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return num_running_ == 0; });
}

void Workers::take_part(size_t index) const {
  const size_t begin = count_ * index / num_parts_;
  const size_t end = count_ * (index + 1) / num_parts_;
  if (begin < end) (*body_)(begin, end);
}

void Workers::run(size_t index) {
  uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || round_ != done; });
    if (is_ending_) return;
    done = round_;
    lock.unlock();
    take_part(index);
    lock.lock();
    if (--num_running_ == 0) changed_.notify_all();
  }
}

void multiply(Workers& workers, const Matrix& matrix, const std::vector<float>& x,
              std::vector<float>& y) {
  const size_t columns = matrix.columns;
  const size_t num_tokens = x.size() / columns;
  y.resize(num_tokens * matrix.rows);
  workers.split(matrix.rows, [&](size_t begin, size_t end) {
    std::vector<float> row(columns);
    for (size_t r = begin; r < end; ++r) {
      const uint16_t* weights = matrix.data + r * columns;
      for (size_t c = 0; c < columns; ++c) row[c] = widened(weights[c]);
      const auto dot = [&]<size_t kTokens>(size_t token) {
        dot_products<kTokens>(row.data(), columns, x.data() + token * columns,
                              y.data() + token * matrix.rows + r, matrix.rows);
      };
      size_t token = 0;
      for (; token + 4 <= num_tokens; token += 4) dot.template operator()<4>(token);
      for (; token + 2 <= num_tokens; token += 2) dot.template operator()<2>(token);
      for (; token < num_tokens; ++token) dot.template operator()<1>(token);
    }
  });
}

void rms_norm(const Vector& weight, float epsilon, const std::vector<float>& x,
              std::vector<float>& y) {
  y.resize(x.size());
  for (size_t begin = 0; begin < x.size(); begin += weight.size) {
    double sum = 0;
    for (size_t i = 0; i < weight.size; ++i) sum += double{x[begin + i]} * double{x[begin + i]};
    const double mean = sum / static_cast<double>(weight.size);
    const auto factor = static_cast<float>(1 / std::sqrt(mean + double{epsilon}));
    for (size_t i = 0; i < weight.size; ++i) y[begin + i] = x[begin + i] * factor * weight.data[i];
  }
}

void gate_with(bool has_gelu, const std::vector<float>& up, std::vector<float>& gate) {
  constexpr float kRootTwoByPi = 0.7978845608f;
  constexpr float kCubic = 0.044715f;  // of gelu's form with tanh
  for (size_t i = 0; i < gate.size(); ++i) {
    const float x = gate[i];
    const float activated = has_gelu
                                ? x / 2 * (1 + std::tanh(kRootTwoByPi * (x + kCubic * x * x * x)))
                                : x / (1 + std::exp(-x));
    gate[i] = activated * up[i];
  }
}

void append_row(const Matrix& matrix, size_t row, float scale, std::vector<float>& to) {
  const uint16_t* weights = matrix.data + row * matrix.columns;
  for (size_t c = 0; c < matrix.columns; ++c) to.push_back(widened(weights[c]) * scale);
}

void to_bf16(const std::vector<float>& from, std::vector<uint16_t>& to) {
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t half =
        0x7fff + (bits >> 16 & 1);  // just below, or exactly, half of the last bit
    to[i] = static_cast<uint16_t>((bits + half) >> 16);
  }
}

}  // namespace llm
