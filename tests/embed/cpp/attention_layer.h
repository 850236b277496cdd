// AttentionLayer: what pagejit does in a step of an engine. The new tokens' K and V go into the
// paged cache, then their queries attend to everything that is in it. One thread.
#pragma once

#include <pagejit/engine.h>

#include <vector>

#include "cuda_driver.h"
#include "model.h"
#include "paged_cache.h"

// The new tokens of a step, those of the first sequence first. Every sequence has one (a decode
// step) or more (a prefill, or a chunk of one).
struct Step {
  std::vector<Sequence*> sequences;
  std::vector<int32_t> num_new_tokens;  // of each sequence
  std::vector<Bf16> q;                  // [tokens, kNumHeads, kHeadSize]
  std::vector<Bf16> k;                  // [tokens, kNumKvHeads, kHeadSize]
  std::vector<Bf16> v;
};

class AttentionLayer {
 public:
  // Prepares all kernels: from pagejit's cache where this program ran before, else compiled now.
  AttentionLayer(const CudaDriver& cuda, pagejit::Engine& engine);

  // The attention of every new token over its sequence up to itself: as Step::q. The sequences
  // have their new tokens when this returns.
  std::vector<Bf16> run(PagedCache& cache, const Step& step);

  // Fault::kBlockTable is the layer's, the others are the cache's.
  void break_by(Fault fault) { fault_ = fault; }

 private:
  const CudaDriver& cuda_;
  pagejit::CacheWriteKernel write_;
  pagejit::Kernel prefill_;
  pagejit::Kernel decode_;
  DeviceBuffer workspace_;
  Fault fault_ = Fault::kNone;
};
