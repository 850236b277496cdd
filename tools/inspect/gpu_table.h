// GPUs and what their makers' papers say of them: for occupancy and rooflines where no GPU is at
// hand. Not a list of what pagejit serves, and nothing measured. Thread-safety: constant data and
// free functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit::inspect {

struct Gpu {
  const char* id;     // what --gpu takes: "h200"
  const char* title;  // "H200 SXM 141 GB"
  int sm;             // compute capability, major * 10 + minor
  int num_sms;
  double bandwidth_gb_s;  // of its memory, 10^9 bytes per second
  // Dense products of 16-bit floats with f32 accumulation, 10^12 operations per second (a
  // multiplication and an addition are two); 0 where no paper says it.
  double tensor_tflops;
  const char* source;

  // FLOP per byte from which on the products are the limit; 0 where the rate is not known.
  double ridge() const { return tensor_tflops * 1e3 / bandwidth_gb_s; }
};

// By compute capability; the one that is taken where none is named comes first of its capability.
std::span<const Gpu> known_gpus();

// By its id or its title, in either case of letters. kNotFound with the ids.
Result<Gpu> find_gpu(std::string_view name);

// Those that a cubin for `target` runs on, in the order of known_gpus().
std::vector<Gpu> gpus_of(const Target& target);

}  // namespace pagejit::inspect
