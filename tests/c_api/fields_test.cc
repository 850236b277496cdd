// Every field of the C structs arrives in the C++ struct, in the field of its name and in no other;
// what C++ tells arrives in C alike. One field at a time gets another value than its default. The
// fields are those of the layout lists.
#include <gmock/gmock.h>

#include <cstring>
#include <new>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include "pagejit/pagejit.h"
#include "runtime/c_api/families.h"
#include "runtime/c_api/options.h"

namespace pagejit::c_api {
namespace {

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define NUMBER(name, value, of_cpp) static_assert(static_cast<int>(of_cpp) == (value))
#define CONSTANT(name, value) static_assert((name) == (value))
#include "tests/c_api/layout_numbers.inc"
static_assert(PAGEJIT_DS_MLA_ROW_BYTES == kDsMlaRowBytes);
static_assert(PAGEJIT_DEBUG_REPORT_BYTES == kDebugReportBytes);
static_assert(PAGEJIT_MAX_LISTED_STATES == kMaxListedStates);
static_assert(PAGEJIT_MAX_CASCADE_LEVELS == kMaxCascadeLevels);

// From C to C++: `Cpp`, and a function that converts with the defaults of C in the other fields.
// The primary template: a struct that is no argument of its own, or that goes the other way.
template <class C>
struct FromC;

template <class Family>
struct SpecFromC {
  using Cpp = typename Family::Spec;
  static typename Family::CSpec defaults() { return Family::to_c(Cpp{}); }
  static Status convert(const typename Family::CSpec& from, Cpp* to) {
    return Family::to_cpp(&from, to);
  }
  static typename Family::CSpec back(const Cpp& from) { return Family::to_c(from); }
};
template <class Family>
struct ArgsFromC {
  using Cpp = typename Family::Args;
  static typename Family::CArgs defaults() { return Family::default_args(); }
  static Status convert(const typename Family::CArgs& from, Cpp* to) {
    return Family::to_cpp(&from, to);
  }
};
#define PAGEJIT_FAMILY(Family)                                        \
  template <>                                                         \
  struct FromC<typename Family::CSpec> : public SpecFromC<Family> {}; \
  template <>                                                         \
  struct FromC<typename Family::CArgs> : public ArgsFromC<Family> {};
PAGEJIT_FAMILY(AttentionFamily)
PAGEJIT_FAMILY(MergeStatesFamily)
PAGEJIT_FAMILY(CacheWriteFamily)
PAGEJIT_FAMILY(CopyBlocksFamily)
PAGEJIT_FAMILY(GatherCacheFamily)
PAGEJIT_FAMILY(ConvertFloat8Family)
PAGEJIT_FAMILY(MlaCacheWriteFamily)
PAGEJIT_FAMILY(IndexKeyWriteFamily)
PAGEJIT_FAMILY(IndexKeyGatherFamily)
PAGEJIT_FAMILY(IndexLogitsFamily)
PAGEJIT_FAMILY(TopKFamily)
#undef PAGEJIT_FAMILY

// A spec of attention that is not the default, for those that point to one.
pagejit_kernel_spec other_attention() {
  return AttentionFamily::to_c(KernelSpec{.head_size = 64, .group_size = 8});
}

template <>
struct FromC<pagejit_cascade_spec> {
  using Cpp = CascadeSpec;
  static pagejit_cascade_spec defaults() {
    static const pagejit_kernel_spec attention = AttentionFamily::to_c({});
    pagejit_cascade_spec spec = CascadeFamily::to_c({});
    spec.attention = &attention;
    return spec;
  }
  static Status convert(const pagejit_cascade_spec& from, Cpp* to) {
    return CascadeFamily::to_cpp(&from, to);
  }
};
template <>
struct FromC<pagejit_cascade_args> : public ArgsFromC<CascadeFamily> {};
template <>
struct FromC<pagejit_sparse_attention_spec> {
  using Cpp = SparseAttentionSpec;
  static pagejit_sparse_attention_spec defaults() {
    static const pagejit_kernel_spec attention = AttentionFamily::to_c({});
    pagejit_sparse_attention_spec spec = SparseAttentionFamily::to_c({});
    spec.attention = &attention;
    return spec;
  }
  static Status convert(const pagejit_sparse_attention_spec& from, Cpp* to) {
    return SparseAttentionFamily::to_cpp(&from, to);
  }
};
template <>
struct FromC<pagejit_sparse_attention_args> : public ArgsFromC<SparseAttentionFamily> {};

template <>
struct FromC<pagejit_cascade_level> {
  using Cpp = CascadeLevel;
  static pagejit_cascade_level defaults() {
    pagejit_cascade_level level = {};
    pagejit_cascade_level_init(&level, sizeof level);
    return level;
  }
  static Status convert(const pagejit_cascade_level& from, Cpp* to) {
    pagejit_cascade_args args = CascadeFamily::default_args();
    args.num_levels = 1;
    args.levels = &from;
    CascadeArgsWithRoom converted;
    Status status = CascadeFamily::to_cpp(&args, &converted);
    if (status) std::memcpy(static_cast<void*>(to), converted.levels, sizeof *to);
    return status;
  }
};
template <>
struct FromC<pagejit_merge_state> {
  using Cpp = MergeState;
  static pagejit_merge_state defaults() { return {}; }
  static Status convert(const pagejit_merge_state& from, Cpp* to) {
    pagejit_merge_states_args args = MergeStatesFamily::default_args();
    const pagejit_merge_state states[] = {{}, from};
    args.num_states = 2;
    args.states = states;
    MergeStatesArgsWithRoom converted;
    Status status = MergeStatesFamily::to_cpp(&args, &converted);
    converted.read_list();
    if (status) *to = converted.states[1];
    return status;
  }
};
#define PAGEJIT_PART(CType, CppType)                    \
  template <>                                           \
  struct FromC<CType> {                                 \
    using Cpp = CppType;                                \
    static CType defaults() { return {}; }              \
    static Status convert(const CType& from, Cpp* to) { \
      *to = c_api::to_cpp(from);                        \
      return {};                                        \
    }                                                   \
  };
PAGEJIT_PART(pagejit_kv_strides, KvStrides)
PAGEJIT_PART(pagejit_block_sparse_args, BlockSparseArgs)
PAGEJIT_PART(pagejit_index_row_ranges, IndexRowRanges)
#undef PAGEJIT_PART
#define PAGEJIT_WHOLE(CType, CppType)                                                      \
  template <>                                                                              \
  struct FromC<CType> {                                                                    \
    using Cpp = CppType;                                                                   \
    static CType defaults() {                                                              \
      CType value = {};                                                                    \
      CType##_init(&value, sizeof value);                                                  \
      return value;                                                                        \
    }                                                                                      \
    static Status convert(const CType& from, Cpp* to) { return c_api::to_cpp(&from, to); } \
  };
PAGEJIT_WHOLE(pagejit_swap_blocks_args, SwapBlocksArgs)
PAGEJIT_WHOLE(pagejit_paged_attention_args, PagedAttentionArgs)
PAGEJIT_WHOLE(pagejit_target, Target)
PAGEJIT_WHOLE(pagejit_engine_options, EngineOptions)
#undef PAGEJIT_WHOLE

template <class C>
concept GoesToCpp = requires {
  typename FromC<C>::Cpp;
};

// ---- values ----

// Another value than `value` has. `Cpp`: the type of the field in C++, which says what is legal.
template <class Cpp, class C>
void change(C& value) {
  if constexpr (std::is_same_v<C, const char*>) {
    value = "another";
  } else if constexpr (std::is_pointer_v<C>) {
    value = reinterpret_cast<C>(uintptr_t{0x123456789abc});
  } else if constexpr (std::is_class_v<C>) {  // of the project: each part another
    if constexpr (std::is_same_v<C, pagejit_kv_strides>) {
      value = {.block = 11, .token = 12, .head = 13};
    } else if constexpr (std::is_same_v<C, pagejit_block_sparse_args>) {
      value = {.local_blocks = 11,
               .vert_stride = 12,
               .block_size = 13,
               .head_sliding_step = 14,
               .tp_rank = 15};
    } else {
      static_assert(std::is_same_v<C, pagejit_index_row_ranges>);
      change<const int32_t*>(value.seq_lens);
    }
  } else if constexpr (std::is_same_v<Cpp, bool>) {
    value = value == 0 ? 1 : 0;
  } else if constexpr (std::is_enum_v<Cpp>) {
    value = value == 1 ? 0 : 1;
  } else {
    value = static_cast<C>(value + 3);
  }
}

bool is_equal(const KvStrides& a, const KvStrides& b) {
  return std::tie(a.block, a.token, a.head) == std::tie(b.block, b.token, b.head);
}
bool is_equal(const BlockSparseArgs& a, const BlockSparseArgs& b) { return a == b; }
bool is_equal(const IndexRowRanges& a, const IndexRowRanges& b) {
  return std::tie(a.row_begins, a.row_ends, a.seq_lens, a.next_n) ==
         std::tie(b.row_begins, b.row_ends, b.seq_lens, b.next_n);
}

// Whether the field of C and that of C++ are of one kind.
template <class C, class Cpp>
concept IsValue = (std::is_class_v<C> == std::is_class_v<Cpp>) || std::is_same_v<C, const char*>;

template <class C, class Cpp>
bool is_same(const C& c, const Cpp& cpp) {
  if constexpr (std::is_same_v<C, const char*>) {
    return std::string(c == nullptr ? "" : c) == cpp;
  } else if constexpr (std::is_pointer_v<C>) {
    return static_cast<const void*>(c) == static_cast<const void*>(cpp);
  } else if constexpr (std::is_class_v<C>) {
    return is_equal(c_api::to_cpp(c), cpp);
  } else {
    return static_cast<double>(c) == static_cast<double>(cpp);
  }
}

// A struct of C++ that begins as zeros, so that also what is between its fields can be compared.
template <class Cpp>
class Zeroed {
 public:
  Zeroed() : value_(new (bytes_) Cpp) {}
  ~Zeroed() { value_->~Cpp(); }
  Zeroed(const Zeroed&) = delete;
  Zeroed& operator=(const Zeroed&) = delete;
  Cpp& operator*() { return *value_; }
  std::string bytes() const { return std::string(bytes_, sizeof bytes_); }

 private:
  alignas(64) char bytes_[sizeof(Cpp)] = {};
  Cpp* value_;
};

std::string texts_of(const EngineOptions& o) {
  std::string all;
  for (const std::string* text :
       {&o.driver, &o.emulator_path, &o.nvrtc_path, &o.host_compiler, &o.cache_dir, &o.remote,
        &o.record_path, &o.dump_dir, &o.stats_path}) {
    all += *text + "|";
  }
  for (const bool flag :
       {o.allow_emulator, o.disk_cache, o.remote_write, o.require_signed, o.tuned}) {
    all += flag ? '1' : '0';
  }
  for (const int64_t number :
       {static_cast<int64_t>(o.host_build), static_cast<int64_t>(o.cache_max_bytes),
        static_cast<int64_t>(o.remote_layout), static_cast<int64_t>(o.compile_threads),
        static_cast<int64_t>(o.jit), static_cast<int64_t>(o.log_level)}) {
    all += "|" + std::to_string(number);
  }
  return all;
}

template <class Cpp>
void expect_equal(Zeroed<Cpp>& a, Zeroed<Cpp>& b) {
  if constexpr (std::is_same_v<Cpp, EngineOptions>) {
    EXPECT_EQ(texts_of(*a), texts_of(*b)) << "another field changed, too";
  } else {
    static_assert(std::is_trivially_copyable_v<Cpp>);
    if constexpr (requires { (*a).ranges; }) {  // is copied with the gap at its end
      EXPECT_TRUE(is_equal((*a).ranges, (*b).ranges)) << "another field changed, too";
      for (Zeroed<Cpp>* each : {&a, &b}) {
        std::memset(static_cast<void*>(&(**each).ranges), 0, sizeof(**each).ranges);
      }
    }
    EXPECT_TRUE(a.bytes() == b.bytes()) << "another field changed, too";
  }
}

// ---- the test ----

// Fields that no field of C++ has the name of, or whose value is not that of a field.
const std::set<std::string> kSpecial = {
    "pagejit_cascade_spec.attention",           // points to a spec: below
    "pagejit_sparse_attention_spec.attention",  // likewise
    "pagejit_merge_states_args.states",         // an array, as are:
    "pagejit_cascade_args.levels",
    "pagejit_engine_options.memory_bundles",
    "pagejit_engine_options.num_memory_bundles",
    "pagejit_engine_options.bundles",
    "pagejit_engine_options.num_bundles",
    "pagejit_engine_options.read_only_dirs",
    "pagejit_engine_options.num_read_only_dirs",
    "pagejit_engine_options.trusted_keys",
    "pagejit_engine_options.num_trusted_keys",
    "pagejit_engine_options.log_callback",  // functions: errors_test.cc
    "pagejit_engine_options.log_user",
    "pagejit_engine_options.on_event",
    "pagejit_engine_options.event_user",
};

class FieldsTest : public ::testing::Test {
 protected:
  template <class C, class Get>
  void check(const std::string& name, const std::string& field, Get get) {
    if constexpr (GoesToCpp<C>) {
      if (field == "struct_size" || field.starts_with("reserved")) return;
      if (kSpecial.contains(name)) {
        ++num_special_;
        return;
      }
      SCOPED_TRACE(name);
      check_field<C>(get);
    }
  }

  int num_checked_ = 0;
  size_t num_special_ = 0;

 private:
  template <class C, class Get>
  void check_field(Get get) {
    using Cpp = typename FromC<C>::Cpp;
    if constexpr (!std::is_invocable_v<Get, Cpp&>) {
      ADD_FAILURE() << "C++ has no field of this name";
    } else if constexpr (!IsValue<std::remove_cvref_t<std::invoke_result_t<Get, C&>>,
                                  std::remove_cvref_t<std::invoke_result_t<Get, Cpp&>>>) {
      ADD_FAILURE() << "needs a test of its own";
    } else {
      using CppField = std::remove_cvref_t<std::invoke_result_t<Get, Cpp&>>;
      const C defaults = FromC<C>::defaults();
      C given = defaults;
      change<CppField>(get(given));
      Zeroed<Cpp> before, after;
      ASSERT_TRUE(FromC<C>::convert(defaults, &*before));
      const Status status = FromC<C>::convert(given, &*after);
      ASSERT_TRUE(status) << status.to_string();
      EXPECT_TRUE(is_same(get(given), get(*after))) << "did not arrive";
      EXPECT_FALSE(is_same(get(given), get(*before))) << "is the default";
      if constexpr (requires { FromC<C>::back(*after); }) {
        const C back = FromC<C>::back(*after);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(&back), sizeof back),
                  std::string(reinterpret_cast<const char*>(&given), sizeof given));
      }
      get(*after) = get(*before);
      expect_equal(before, after);
      ++num_checked_;
    }
  }
};

#define FIELD(type, field, bytes) \
  check<type>(#type "." #field, #field, [](auto& s) -> decltype((s.field)) { return s.field; })

TEST_F(FieldsTest, OfAttentionArriveUnderTheirNames) {
#include "tests/c_api/layout_attention.inc"
  EXPECT_GT(num_checked_, 150);
  EXPECT_EQ(num_special_, 4u);
}

TEST_F(FieldsTest, OfTheCacheOperationsAndTheIndexerArriveUnderTheirNames) {
#include "tests/c_api/layout_cache.inc"
  EXPECT_GT(num_checked_, 150);
  EXPECT_EQ(num_special_, 0u);
}

TEST_F(FieldsTest, OfTheEngineArriveUnderTheirNames) {
#include "tests/c_api/layout_engine.inc"
  EXPECT_GT(num_checked_, 20);
  EXPECT_EQ(num_special_, 12u);
}

TEST_F(FieldsTest, AnAttentionSpecInAnotherSpecArrives) {
  const pagejit_kernel_spec attention = other_attention();
  const KernelSpec expected{.head_size = 64, .group_size = 8};
  pagejit_cascade_spec cascade = FromC<pagejit_cascade_spec>::defaults();
  cascade.attention = &attention;
  CascadeSpec of_cascade;
  ASSERT_TRUE(CascadeFamily::to_cpp(&cascade, &of_cascade));
  EXPECT_EQ(of_cascade.attention, expected);
  pagejit_sparse_attention_spec sparse = FromC<pagejit_sparse_attention_spec>::defaults();
  sparse.attention = &attention;
  SparseAttentionSpec of_sparse;
  ASSERT_TRUE(SparseAttentionFamily::to_cpp(&sparse, &of_sparse));
  EXPECT_EQ(of_sparse.attention, expected);
}

TEST_F(FieldsTest, ListsOfEngineOptionsArrive) {
  pagejit_engine_options options = FromC<pagejit_engine_options>::defaults();
  const char* const bundles[] = {"a", "b"};
  const char* const directories[] = {"c"};
  const char* const keys[] = {"d", "e", "f"};
  const pagejit_bytes memory[] = {{"ghi", 2}};
  options.bundles = bundles;
  options.num_bundles = 2;
  options.read_only_dirs = directories;
  options.num_read_only_dirs = 1;
  options.trusted_keys = keys;
  options.num_trusted_keys = 3;
  options.memory_bundles = memory;
  options.num_memory_bundles = 1;
  EngineOptions converted;
  ASSERT_TRUE(to_cpp(&options, &converted));
  using ::testing::ElementsAre;
  EXPECT_THAT(converted.bundles, ElementsAre("a", "b"));
  EXPECT_THAT(converted.read_only_dirs, ElementsAre("c"));
  EXPECT_THAT(converted.trusted_keys, ElementsAre("d", "e", "f"));
  EXPECT_THAT(converted.memory_bundles, ElementsAre("gh"));
}

// From C++ to C.
TEST_F(FieldsTest, WhatIsKnownOfAKernelArrivesInC) {
  const KernelInfo info{.kernel_name = "name",
                        .key = "key",
                        .target = {TargetKind::kCuda, 90, TargetVariant::kExact},
                        .origin = ImageOrigin::kBundle,
                        .compile_ms = 1.5,
                        .prepare_ms = 2.5,
                        .image_bytes = 3,
                        .registers = 4,
                        .spill_store_bytes = 5,
                        .spill_load_bytes = 6,
                        .stack_bytes = 7,
                        .shared_bytes = 8,
                        .threads_per_cta = 9,
                        .pdl = true,
                        .tuned = false};
  const pagejit_kernel_info c = to_c(info);
  EXPECT_STREQ(c.kernel_name, "name");
  EXPECT_STREQ(c.key, "key");
  EXPECT_EQ(c.target.kind, PAGEJIT_TARGET_CUDA);
  EXPECT_EQ(c.target.sm, 90);
  EXPECT_EQ(c.target.variant, PAGEJIT_TARGET_VARIANT_EXACT);
  EXPECT_EQ(c.origin, PAGEJIT_ORIGIN_BUNDLE);
  EXPECT_EQ(c.compile_ms, 1.5);
  EXPECT_EQ(c.prepare_ms, 2.5);
  EXPECT_EQ(c.image_bytes, 3u);
  EXPECT_EQ(c.registers, 4);
  EXPECT_EQ(c.spill_store_bytes, 5);
  EXPECT_EQ(c.spill_load_bytes, 6);
  EXPECT_EQ(c.stack_bytes, 7);
  EXPECT_EQ(c.shared_bytes, 8);
  EXPECT_EQ(c.threads_per_cta, 9);
  EXPECT_EQ(c.pdl, 1);
  EXPECT_EQ(c.tuned, 0);
  KernelInfo tuned;
  tuned.tuned = true;
  EXPECT_EQ(to_c(tuned).tuned, 1);
  EXPECT_EQ(to_c(tuned).pdl, 0);
}

}  // namespace
}  // namespace pagejit::c_api
