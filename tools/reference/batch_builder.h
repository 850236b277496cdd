// BatchBuilder: draws the parts of one AttentionBatch in turn and lays them out. Of use to
// make_attention_batch() only, which checks the options first. Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/reference/attention_batch.h"
#include "tools/reference/random.h"
#include "tools/reference/value_source.h"

namespace pagejit {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Makes one batch; the methods are called once each, in the order in which they stand.
class BatchBuilder {
 public:
  // The options must be legal.
  explicit BatchBuilder(const BatchOptions& options);

  void make_queries();
  void make_block_table();
  void make_caches();
  void make_token_lists();  // after the caches

  AttentionBatch take();

 private:
  // The sequence whose first blocks a sequence uses.
  struct Donor {
    int seq = 0;
    int64_t num_blocks = 0;
  };

  // A token's place in the caches.
  struct Slot {
    int64_t block = 0;
    int64_t token = 0;  // of the block
    int64_t head = 0;

    int64_t first_element(const KvPlace& place) const {
      return place.offset + block * place.strides.block + token * place.strides.token +
             head * place.strides.head;
    }
  };

  void make_custom_mask();
  void make_bidirectional_ranges();
  void make_qq_bias();

  const KernelSpec& spec() const { return batch_.options.spec; }
  int seq_len(int seq) const { return batch_.seq_lens[static_cast<size_t>(seq)]; }
  int64_t num_blocks_of(int seq) const { return ceil_div(seq_len(seq), spec().block_size); }
  int64_t buffer_size(DataType type, int64_t stride_token) const;

  void find_donor(int seq);
  std::vector<int32_t> shuffled(int64_t count);
  void lay_out_caches();
  void lay_out_token_scales();
  void make_tokens(int seq);
  void make_ds_mla_row(const Slot& slot, float* row);
  void store(const KvPlace& place, const Slot& slot, const float* row, int row_elements);
  void store_scale(const KvPlace& place, std::vector<float>& scales, const KvStrides& strides,
                   const Slot& slot, float scale, int row_elements);

  AttentionBatch batch_;
  SplitMix64 rng_;
  ValueSource values_;
  std::vector<Donor> donors_;
};

}  // namespace pagejit
