// CApiTest: the C API over an engine with a fake compiler and the stub driver, with a handle of
// each kind; and Values, legal arguments for any function. Thread-safety: handles as the C API
// says; each thread has Values of its own.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "pagejit/pagejit.h"
#include "runtime/c_api/family.h"
#include "tests/runtime/paged_attention_fixture.h"

namespace pagejit {

// Structs with struct_size.
template <class T>
concept Sized = requires(T value) {
  value.struct_size;
};

template <class T>
T* as_handle(uint64_t value) {
  return reinterpret_cast<T*>(value);
}

// Whatever kind of handle it is, if it is one that is not yet destroyed.
inline void destroy_any(uint64_t value) {
  const auto kind = static_cast<c_api::Kind>(value >> 56);
  if (kind != c_api::Kind{}) (void)c_api::close(kind, value);  // else a number
}

// A handle of each kind.
struct Handles {
  pagejit_engine* engine = nullptr;
  pagejit_environment* environment = nullptr;
  pagejit_pending* pending = nullptr;
  pagejit_stats* stats = nullptr;
  pagejit_paged_attention* paged_attention = nullptr;
  pagejit_kernel* kernel = nullptr;
  pagejit_merge_states_kernel* merge_states = nullptr;
  pagejit_cache_write_kernel* cache_write = nullptr;
  pagejit_copy_blocks_kernel* copy_blocks = nullptr;
  pagejit_gather_cache_kernel* gather_cache = nullptr;
  pagejit_convert_float8_kernel* convert_float8 = nullptr;
  pagejit_mla_cache_write_kernel* mla_cache_write = nullptr;
  pagejit_index_key_write_kernel* index_key_write = nullptr;
  pagejit_index_key_gather_kernel* index_key_gather = nullptr;
  pagejit_index_logits_kernel* index_logits = nullptr;
  pagejit_top_k_kernel* top_k = nullptr;
  pagejit_cascade_kernel* cascade = nullptr;
  pagejit_sparse_attention_kernel* sparse_attention = nullptr;

  auto all() const {
    return std::make_tuple(engine, environment, pending, stats, paged_attention, kernel,
                           merge_states, cache_write, copy_blocks, gather_cache, convert_float8,
                           mla_cache_write, index_key_write, index_key_gather, index_logits, top_k,
                           cascade, sparse_attention);
  }
  template <class T>
  T* of() const {
    return std::get<T*>(all());
  }
};

template <class T, class Tuple>
inline constexpr bool is_element = false;
template <class T, class... Elements>
inline constexpr bool is_element<T, std::tuple<Elements...>> = (std::is_same_v<T, Elements> || ...);
template <class T>
concept Handle = is_element<T*, decltype(Handles().all())>;

// Legal specs of each family.
struct Specs {
  Specs() {
    pagejit_kernel_spec_init(&kernel, sizeof kernel);
    pagejit_kernel_spec_init(&latent, sizeof latent);
    latent.head_size = 576;
    latent.head_size_v = 512;
    latent.block_size = 64;
    latent.group_size = 16;
    latent.latent = 1;
    latent.kv_table = PAGEJIT_KV_TABLE_POSITIONS;
    pagejit_merge_states_spec_init(&merge_states, sizeof merge_states);
    pagejit_cache_write_spec_init(&cache_write, sizeof cache_write);
    pagejit_copy_blocks_spec_init(&copy_blocks, sizeof copy_blocks);
    pagejit_gather_cache_spec_init(&gather_cache, sizeof gather_cache);
    pagejit_convert_float8_spec_init(&convert_float8, sizeof convert_float8);
    pagejit_mla_cache_write_spec_init(&mla_cache_write, sizeof mla_cache_write);
    pagejit_index_key_write_spec_init(&index_key_write, sizeof index_key_write);
    pagejit_index_key_gather_spec_init(&index_key_gather, sizeof index_key_gather);
    pagejit_index_logits_spec_init(&index_logits, sizeof index_logits);
    pagejit_top_k_spec_init(&top_k, sizeof top_k);
    pagejit_cascade_spec_init(&cascade, sizeof cascade);
    cascade.attention = &kernel;
    pagejit_sparse_attention_spec_init(&sparse_attention, sizeof sparse_attention);
    sparse_attention.attention = &latent;
  }
  Specs(const Specs&) = delete;
  Specs& operator=(const Specs&) = delete;

  pagejit_kernel_spec kernel;
  pagejit_kernel_spec latent;
  pagejit_merge_states_spec merge_states;
  pagejit_cache_write_spec cache_write;
  pagejit_copy_blocks_spec copy_blocks;
  pagejit_gather_cache_spec gather_cache;
  pagejit_convert_float8_spec convert_float8;
  pagejit_mla_cache_write_spec mla_cache_write;
  pagejit_index_key_write_spec index_key_write;
  pagejit_index_key_gather_spec index_key_gather;
  pagejit_index_logits_spec index_logits;
  pagejit_top_k_spec top_k;
  pagejit_cascade_spec cascade;
  pagejit_sparse_attention_spec sparse_attention;
};

class CApiTest : public PagedAttentionTest {
 protected:
  CApiTest() {
    script->record_params(0);  // those of other families are smaller
    EXPECT_EQ(pagejit_error_create(&error), PAGEJIT_OK);
    EngineDependencies with = dependencies();
    with.plan = plan_any;  // most families have no fake
    handles.engine = make_c_engine(with);
    prepare_all();
  }
  ~CApiTest() override {
    for (const uint64_t value : owned_) destroy_any(value);
    pagejit_error_destroy(error);
  }

  // A handle of an engine with fakes, which no C function makes.
  pagejit_engine* make_c_engine(const EngineDependencies& with) {
    Result<std::shared_ptr<Engine>> made = create_engine(options(), with);
    EXPECT_TRUE(made) << made.status().to_string();
    pagejit_engine* engine = nullptr;
    EXPECT_TRUE(c_api::hand_out(c_api::Kind::kEngine, c_api::EngineObject{*made}, &engine));
    owned_.push_back(c_api::value_of(engine));
    return engine;
  }

  std::string message() const { return pagejit_error_message(error); }

  // For `EXPECT_OK(call)`: the sentence where it is none.
  std::string outcome(pagejit_status status) const {
    return status == PAGEJIT_OK ? "" : std::to_string(status) + " " + message();
  }

  Handles handles;
  Specs specs;
  pagejit_error* error = nullptr;

 private:
  void prepare_all() {
    pagejit_engine* engine = handles.engine;
    auto ok = [&](pagejit_status status) { EXPECT_EQ(outcome(status), ""); };
    ok(pagejit_kernel_prepare(engine, &specs.kernel, 0, nullptr, &handles.kernel, error));
    ok(pagejit_merge_states_kernel_prepare(engine, &specs.merge_states, 0, nullptr,
                                           &handles.merge_states, error));
    ok(pagejit_cache_write_kernel_prepare(engine, &specs.cache_write, 0, nullptr,
                                          &handles.cache_write, error));
    ok(pagejit_copy_blocks_kernel_prepare(engine, &specs.copy_blocks, 0, nullptr,
                                          &handles.copy_blocks, error));
    ok(pagejit_gather_cache_kernel_prepare(engine, &specs.gather_cache, 0, nullptr,
                                           &handles.gather_cache, error));
    ok(pagejit_convert_float8_kernel_prepare(engine, &specs.convert_float8, 0, nullptr,
                                             &handles.convert_float8, error));
    ok(pagejit_mla_cache_write_kernel_prepare(engine, &specs.mla_cache_write, 0, nullptr,
                                              &handles.mla_cache_write, error));
    ok(pagejit_index_key_write_kernel_prepare(engine, &specs.index_key_write, 0, nullptr,
                                              &handles.index_key_write, error));
    ok(pagejit_index_key_gather_kernel_prepare(engine, &specs.index_key_gather, 0, nullptr,
                                               &handles.index_key_gather, error));
    ok(pagejit_index_logits_kernel_prepare(engine, &specs.index_logits, 0, nullptr,
                                           &handles.index_logits, error));
    ok(pagejit_top_k_kernel_prepare(engine, &specs.top_k, 0, nullptr, &handles.top_k, error));
    ok(pagejit_cascade_kernel_prepare(engine, &specs.cascade, 0, nullptr, &handles.cascade, error));
    ok(pagejit_sparse_attention_kernel_prepare(engine, &specs.sparse_attention, 0, nullptr,
                                               &handles.sparse_attention, error));
    ok(pagejit_kernel_prepare_async(engine, &specs.kernel, 0, nullptr, &handles.pending, error));
    ok(pagejit_engine_stats(engine, &handles.stats, error));
    ok(pagejit_paged_attention_create(engine, &handles.paged_attention, error));
    pagejit_engine_options options;
    pagejit_engine_options_init(&options, sizeof options);
    ok(pagejit_engine_options_from_environment(&options, &handles.environment, error));
    std::apply([&](auto*... handle) { (owned_.push_back(c_api::value_of(handle)), ...); },
               handles.all());
  }

  std::vector<uint64_t> owned_;
};

}  // namespace pagejit
