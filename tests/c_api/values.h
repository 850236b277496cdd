// Values: a legal argument for every parameter type of the C API, in memory that a thread has for
// itself, and whether a call wrote to what it must not. Thread-safety: none.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/c_api/c_api_fixture.h"

namespace pagejit {

// A struct of the caller's with room behind it for a newer version's fields.
template <Sized Struct>
struct Grown {
  Struct value;
  char tail[8];
};

class Values {
 public:
  explicit Values(const Handles& handles) : handles_(handles) {
    (void)pagejit_error_create(&error);
    reset();
  }
  ~Values() {
    reset();
    pagejit_error_destroy(error);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // A legal argument.
  template <class P>
  P get() {
    using T = std::remove_const_t<std::remove_pointer_t<P>>;
    if constexpr (std::is_same_v<P, const char*>) {
      return "sm_90";  // a target, and no spec and no type
    } else if constexpr (std::is_same_v<P, char*>) {
      return buffer.data();
    } else if constexpr (std::is_same_v<P, void*>) {
      return memory.data();
    } else if constexpr (std::is_same_v<P, size_t>) {
      return buffer.size();
    } else if constexpr (std::is_integral_v<P>) {
      return 0;
    } else if constexpr (std::is_same_v<T, pagejit_error>) {
      return error;
    } else if constexpr (Handle<T>) {
      return handles_.of<T>();
    } else if constexpr (Sized<T>) {
      return &std::get<T>(structs_);
    } else {
      // Where a number, a text or a handle goes.
      // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a handle
      static_assert(sizeof(T) <= sizeof(uint64_t) && !std::is_const_v<std::remove_pointer_t<P>>);
      return reinterpret_cast<P>(&places[next_place_++ % places.size()]);
    }
  }

  // Destroys the handles that a call has made: they would keep the engine, and its jobs would call
  // into a test that has ended.
  void reset() {
    for (const uint64_t place : places) destroy_any(place);
    next_place_ = 0;
    places.fill(kUnwritten);
    buffer.assign(kBufferBytes, '\x5a');
    std::apply([](auto&... each) { (reset(each), ...); }, structs_);
    std::get<pagejit_target>(structs_).variant = PAGEJIT_TARGET_VARIANT_EXACT;
    std::get<pagejit_cascade_spec>(structs_).attention = &specs_.kernel;
    std::get<pagejit_sparse_attention_spec>(structs_).attention = &specs_.latent;
  }

  // The bytes of all that a call may write to, but device memory.
  std::string outputs() const {
    std::string bytes(reinterpret_cast<const char*>(&structs_), sizeof structs_);
    bytes.append(reinterpret_cast<const char*>(places.data()), sizeof places);
    return bytes.append(buffer.data(), buffer.size());
  }
  // Those without the places of numbers, where a length goes even if the buffer is too small.
  std::string outputs_but_numbers() {
    const std::array<uint64_t, 4> kept = places;
    places.fill(kUnwritten);
    std::string bytes = outputs();
    places = kept;
    return bytes;
  }

  static constexpr uint64_t kUnwritten = 0x5a5a5a5a5a5a5a5a;
  static constexpr size_t kBufferBytes = 1 << 16;  // more than any text here has
  pagejit_error* error = nullptr;
  std::array<uint64_t, 4> places{};
  std::vector<char> buffer;
  // What stands for device memory; the stub's is the host's.
  alignas(256) std::array<char, 1 << 16> memory{};

 private:
// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define PAGEJIT_RESET(type) \
  static void reset(type& value) { type##_init(&value, sizeof value); }
  PAGEJIT_RESET(pagejit_target)
  PAGEJIT_RESET(pagejit_kernel_info)
  PAGEJIT_RESET(pagejit_kernel_spec)
  PAGEJIT_RESET(pagejit_attention_args)
  PAGEJIT_RESET(pagejit_merge_states_spec)
  PAGEJIT_RESET(pagejit_merge_states_args)
  PAGEJIT_RESET(pagejit_cache_write_spec)
  PAGEJIT_RESET(pagejit_cache_write_args)
  PAGEJIT_RESET(pagejit_copy_blocks_spec)
  PAGEJIT_RESET(pagejit_copy_blocks_args)
  PAGEJIT_RESET(pagejit_gather_cache_spec)
  PAGEJIT_RESET(pagejit_gather_cache_args)
  PAGEJIT_RESET(pagejit_convert_float8_spec)
  PAGEJIT_RESET(pagejit_convert_float8_args)
  PAGEJIT_RESET(pagejit_swap_blocks_args)
  PAGEJIT_RESET(pagejit_mla_cache_write_spec)
  PAGEJIT_RESET(pagejit_mla_cache_write_args)
  PAGEJIT_RESET(pagejit_index_key_write_spec)
  PAGEJIT_RESET(pagejit_index_key_write_args)
  PAGEJIT_RESET(pagejit_index_key_gather_spec)
  PAGEJIT_RESET(pagejit_index_key_gather_args)
  PAGEJIT_RESET(pagejit_index_logits_spec)
  PAGEJIT_RESET(pagejit_index_logits_args)
  PAGEJIT_RESET(pagejit_top_k_spec)
  PAGEJIT_RESET(pagejit_top_k_args)
  PAGEJIT_RESET(pagejit_cascade_spec)
  PAGEJIT_RESET(pagejit_cascade_args)
  PAGEJIT_RESET(pagejit_sparse_attention_spec)
  PAGEJIT_RESET(pagejit_sparse_attention_args)
  PAGEJIT_RESET(pagejit_paged_attention_args)
  PAGEJIT_RESET(pagejit_engine_options)
  PAGEJIT_RESET(pagejit_prepare_options)
  PAGEJIT_RESET(pagejit_stats_counts)
  PAGEJIT_RESET(pagejit_histogram)
#undef PAGEJIT_RESET
  // NOLINTEND(bugprone-macro-parentheses)

  const Handles& handles_;
  Specs specs_;
  size_t next_place_ = 0;
  std::tuple<pagejit_target, pagejit_kernel_info, pagejit_kernel_spec, pagejit_attention_args,
             pagejit_merge_states_spec, pagejit_merge_states_args, pagejit_cache_write_spec,
             pagejit_cache_write_args, pagejit_copy_blocks_spec, pagejit_copy_blocks_args,
             pagejit_gather_cache_spec, pagejit_gather_cache_args, pagejit_convert_float8_spec,
             pagejit_convert_float8_args, pagejit_swap_blocks_args, pagejit_mla_cache_write_spec,
             pagejit_mla_cache_write_args, pagejit_index_key_write_spec,
             pagejit_index_key_write_args, pagejit_index_key_gather_spec,
             pagejit_index_key_gather_args, pagejit_index_logits_spec, pagejit_index_logits_args,
             pagejit_top_k_spec, pagejit_top_k_args, pagejit_cascade_spec, pagejit_cascade_args,
             pagejit_sparse_attention_spec, pagejit_sparse_attention_args,
             pagejit_paged_attention_args, pagejit_engine_options, pagejit_prepare_options,
             pagejit_stats_counts, pagejit_histogram>
      structs_;
};

}  // namespace pagejit
