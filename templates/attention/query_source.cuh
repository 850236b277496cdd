// Where a CTA's rows of q lie in global memory.
#pragma once

#if PAGEJIT_Q_F32
using QueryElement = float;
#elif PAGEJIT_Q_FP8
using QueryElement = uint8_t;  // a code of e4m3
#else
using QueryElement = uint16_t;  // the 16 bits of an f16 or a bf16
#endif

// What is read of q: the rows of one sequence and KV head.
struct QuerySource {
  const QueryElement* q;  // [query tokens of the sequence, group_size, head_size] by strides
  int64_t stride_token;
  int64_t stride_head;
  uint32_t sign_bits;  // that elements are changed by, two of 16 bits
  int row_begin;       // the CTA's rows are [row_begin, row_begin + num_rows)
  int num_rows;

  PAGEJIT_DEVICE QuerySource(const AttentionParams& params, const AttentionWork& work,
                             int group_size)
      : stride_token(params.q_stride_token),
        stride_head(params.q_stride_head),
        sign_bits(params.q_sign_bits),
        row_begin(work.row_begin),
        num_rows(work.num_rows) {
    const int64_t first_head = work.kv_head_idx * static_cast<int64_t>(group_size);
    q = static_cast<const QueryElement*>(params.q) + work.query_begin * stride_token +
        first_head * stride_head;
  }

  // `row` counts from the CTA's first.
  PAGEJIT_DEVICE const QueryElement* row_start(int row) const {
    const RowPlace place = place_of_row(row_begin + row);
    return q + place.token * stride_token + place.head * stride_head;
  }
};
