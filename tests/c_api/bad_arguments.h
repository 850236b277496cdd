// BadArguments: every kind of bad argument for any C function, from its type alone: null, a
// struct_size that is too small or of the future, a handle that was destroyed, is of another kind
// or none at all; and for those that have rules of their own. Thread-safety: none; threads each
// have their own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/c_api/function_table.h"
#include "tests/c_api/values.h"

namespace pagejit {

inline constexpr int kAsLegal = -1;  // the answer must be that of legal arguments

// An argument in place of a legal one, and what must come of it.
template <class P>
struct Case {
  P argument;
  pagejit_status status;
  std::string sentence;  // part of the message
};

// What of one function's parameters null is legal for.
inline bool may_be_null(const std::string& function, const std::string& type) {
  if (type == "options") return true;
  const bool is_info = type == "info";
  if (is_info && function.ends_with("_precompile")) return true;
  const bool is_composition = function.find("_cascade_") != std::string::npos ||
                              function.find("_sparse_attention_") != std::string::npos;
  if (is_info) return is_composition;
  return function.ends_with("_spec_parts") && type == "output";
}

template <class T>
std::string type_of() {
  if constexpr (std::is_same_v<T, const pagejit_engine_options> ||
                std::is_same_v<T, const pagejit_prepare_options>) {
    return "options";
  } else if constexpr (std::is_same_v<T, pagejit_kernel_info>) {
    return "info";
  } else if constexpr (!std::is_const_v<T>) {
    return "output";
  } else {
    return "";
  }
}

class BadArguments {
 public:
  // `handles` must outlive it.
  explicit BadArguments(const Handles& handles) : values(handles), handles_(handles) {
    pagejit_error_create(&destroyed_error);
    pagejit_error_destroy(destroyed_error);
  }

  // Each gives the right number and a sentence that says what is wrong, and nothing is written.
  template <class... P>
  void check(const char* name, pagejit_status (*function)(P...)) {
    check_each(name, function, std::index_sequence_for<P...>());
  }

  void check_each_function() {
#define PAGEJIT_CHECK(function) check(#function, function);
    PAGEJIT_C_STATUS_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
  }

  void check_init_functions() {
#define PAGEJIT_CHECK(function) check_init(#function, function);
    PAGEJIT_C_INIT_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
  }
  // Those that return no status.
  void check_value_functions();
  // Those of an error object.
  void check_error_functions();
  void check_all() {
    check_each_function();
    check_init_functions();
    check_value_functions();
    check_error_functions();
  }

  Values values;
  pagejit_error* destroyed_error = nullptr;

 private:
  template <class Struct>
  void check_init(const char* name, pagejit_status (*init)(Struct*, size_t)) {
    SCOPED_TRACE(name);
    EXPECT_EQ(init(nullptr, sizeof(Struct)), PAGEJIT_INVALID_ARGUMENT);
    Grown<Struct> grown;
    std::memset(static_cast<void*>(&grown), 0x5a, sizeof grown);
    const Grown<Struct> before = grown;
    const auto bytes = [](const Grown<Struct>& all) {
      return std::string(reinterpret_cast<const char*>(&all), sizeof all);
    };
    for (const size_t size : {size_t{0}, size_t{4}, sizeof(Struct) - 1, size_t{1} << 40}) {
      EXPECT_EQ(init(&grown.value, size), PAGEJIT_INVALID_ARGUMENT) << size;
      EXPECT_EQ(bytes(grown), bytes(before)) << "something was written";
    }
    EXPECT_EQ(init(&grown.value, sizeof(Struct)), PAGEJIT_OK);
    EXPECT_EQ(grown.value.struct_size, sizeof(Struct));
    EXPECT_EQ(std::memcmp(grown.tail, before.tail, sizeof grown.tail), 0) << "beyond its size";
    EXPECT_EQ(init(&grown.value, sizeof(Struct) + 8), PAGEJIT_OK) << "of a newer version";
    EXPECT_EQ(grown.value.struct_size, sizeof(Struct) + 8);
    EXPECT_EQ(std::string(grown.tail, 8), std::string(8, '\0'));
  }
  template <class P>
  std::vector<Case<P>> cases(const std::string& function) {
    using T = std::remove_pointer_t<P>;
    using Plain = std::remove_const_t<T>;
    std::vector<Case<P>> all;
    if constexpr (std::is_same_v<Plain, pagejit_error>) {
      all.push_back({nullptr, kAsLegal, ""});
      // There is nowhere to put a sentence.
      all.push_back({destroyed_error, PAGEJIT_INVALID_ARGUMENT, ""});
      all.push_back(
          {as_handle<Plain>(c_api::value_of(handles_.engine)), PAGEJIT_INVALID_ARGUMENT, ""});
      all.push_back({as_handle<Plain>(0x7fff12345678), PAGEJIT_INVALID_ARGUMENT, ""});
    } else if constexpr (Handle<Plain>) {
      all.push_back({nullptr, PAGEJIT_INVALID_ARGUMENT, ": null"});
      all.push_back({as_handle<Plain>(destroyed_like(c_api::value_of(handles_.of<Plain>()))),
                     PAGEJIT_INVALID_ARGUMENT, "it was destroyed"});
      all.push_back({as_handle<Plain>(c_api::value_of(values.error)), PAGEJIT_INVALID_ARGUMENT,
                     "this is a pagejit_error"});
      all.push_back({as_handle<Plain>(c_api::value_of(destroyed_error)), PAGEJIT_INVALID_ARGUMENT,
                     "this was a pagejit_error"});
      for (const uint64_t value : {uint64_t{1}, uint64_t{0x7fff12345678}, ~uint64_t{0}}) {
        all.push_back({as_handle<Plain>(value), PAGEJIT_INVALID_ARGUMENT, "is no handle"});
      }
    } else if constexpr (Sized<Plain>) {
      const bool is_optional = may_be_null(function, type_of<T>());
      all.push_back(
          {nullptr, is_optional ? kAsLegal : PAGEJIT_INVALID_ARGUMENT, is_optional ? "" : "null"});
      for (const size_t size : {size_t{0}, size_t{4}, sizeof(Plain) - 1, size_t{1} << 40}) {
        all.push_back({with_size<Plain>(size, 0), PAGEJIT_INVALID_ARGUMENT,
                       "struct_size " + std::to_string(size)});
      }
      all.push_back({with_size<Plain>(sizeof(Plain) + 8, 0), kAsLegal, ""});
      if (std::is_const_v<T>) {
        all.push_back({with_size<Plain>(sizeof(Plain) + 8, 1), PAGEJIT_UNSUPPORTED,
                       "made for a newer libpagejit"});
      } else {
        all.push_back({with_size<Plain>(sizeof(Plain) + 8, 1), kAsLegal, ""});
      }
    } else if constexpr (std::is_same_v<P, char*>) {
      all.push_back({nullptr, PAGEJIT_INVALID_ARGUMENT, "buffer: null"});
    } else if constexpr (std::is_pointer_v<P> && !std::is_same_v<P, void*>) {
      all.push_back({nullptr, PAGEJIT_INVALID_ARGUMENT, "null"});
    }
    return all;
  }

  // A handle of the kind of `value` that does not live any more.
  uint64_t destroyed_like(uint64_t value) {
    uint64_t& known = destroyed_[value];
    if (known != 0) return known;
    struct Nothing {};
    pagejit_kernel* made = nullptr;
    const auto kind = static_cast<c_api::Kind>(value >> 56);
    EXPECT_TRUE(c_api::hand_out(kind, Nothing{}, &made));
    EXPECT_TRUE(c_api::close(kind, c_api::value_of(made)));
    return known = c_api::value_of(made);
  }

  // A copy of the legal struct with another size, and a byte behind it.
  template <class Plain>
  Plain* with_size(size_t size, char tail) {
    auto grown = std::make_shared<Grown<Plain>>();
    std::memset(static_cast<void*>(grown.get()), 0, sizeof *grown);
    grown->value = *values.get<Plain*>();
    grown->value.struct_size = size;
    grown->tail[7] = tail;
    kept_.push_back(grown);
    return &grown->value;
  }

  template <class... P, size_t... kIndexes>
  void check_each(const char* name, pagejit_status (*function)(P...),
                  std::index_sequence<kIndexes...>) {
    (check_parameter<kIndexes>(name, function), ...);
  }

  template <size_t kIndex, class... P>
  void check_parameter(const char* name, pagejit_status (*function)(P...)) {
    using Parameter = std::tuple_element_t<kIndex, std::tuple<P...>>;
    // A length may be null, and a buffer of 0 bytes.
    constexpr bool has_buffer = (std::is_same_v<P, char*> || ...);
    if constexpr (has_buffer && std::is_same_v<Parameter, size_t*>) return;
    values.reset();
    const pagejit_status legal = std::apply(function, std::tuple<P...>{values.get<P>()...});
    const std::string legal_message = pagejit_error_message(values.error);
    for (const Case<Parameter>& each : cases<Parameter>(name)) {
      SCOPED_TRACE(std::string(name) + ", parameter " + std::to_string(kIndex) + ": " +
                   (each.sentence.empty() ? "as legal" : each.sentence));
      values.reset();
      std::tuple<P...> arguments{values.get<P>()...};
      std::get<kIndex>(arguments) = each.argument;
      const std::string before = values.outputs();
      const pagejit_status status = std::apply(function, arguments);
      if (each.status == kAsLegal) {
        EXPECT_EQ(status, legal) << pagejit_error_message(values.error);
        EXPECT_EQ(pagejit_error_message(values.error), legal_message);
        continue;
      }
      EXPECT_EQ(status, each.status) << pagejit_error_message(values.error);
      EXPECT_TRUE(values.outputs() == before) << "something was written";
      if (each.sentence.empty()) continue;
      EXPECT_EQ(pagejit_error_code(values.error), each.status);
      EXPECT_THAT(pagejit_error_message(values.error), ::testing::HasSubstr(each.sentence));
    }
    kept_.clear();
  }

  const Handles& handles_;
  std::map<uint64_t, uint64_t> destroyed_;
  std::vector<std::shared_ptr<void>> kept_;
};

inline void BadArguments::check_value_functions() {
  for (const int32_t number : {-1, 7, 256, INT32_MAX}) {
    EXPECT_STREQ(pagejit_data_type_name(number), "unknown");
    EXPECT_EQ(pagejit_data_type_bytes(number), 0);
    EXPECT_EQ(pagejit_data_type_bits(number), 0);
    EXPECT_STREQ(pagejit_origin_name(number), "unknown");
  }
  EXPECT_STREQ(pagejit_status_name(-1), "unknown status");
  EXPECT_STREQ(pagejit_status_name(PAGEJIT_DENIED), "denied");
  EXPECT_EQ(pagejit_index_page_bytes(0, 128, 128), 0);
  EXPECT_EQ(pagejit_index_page_bytes(64, 128, 0), 0) << "no division by it";
  EXPECT_EQ(pagejit_index_page_bytes(64, 128, 128), index_page_bytes(64, 128, 128));
  EXPECT_EQ(pagejit_index_logits_stride(-1), 0);
  EXPECT_EQ(pagejit_index_logits_stride(INT64_MAX), 0);
  EXPECT_EQ(pagejit_index_logits_stride(5), 8);
  EXPECT_EQ(pagejit_index_logits_rows(-1, 5), 0);
  EXPECT_EQ(pagejit_index_logits_rows(64, INT64_MAX), 0);
  EXPECT_EQ(pagejit_index_logits_rows(64, 0), 0);
  EXPECT_EQ(pagejit_index_logits_rows(64, 5), 2);
  EXPECT_EQ(pagejit_version(), PAGEJIT_VERSION);
  EXPECT_STREQ(pagejit_version_text(), PAGEJIT_PROJECT_VERSION) << "CMakeLists.txt has it too";
}

inline void BadArguments::check_error_functions() {
  EXPECT_EQ(pagejit_error_create(nullptr), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(pagejit_error_destroy(nullptr), PAGEJIT_OK);
  EXPECT_EQ(pagejit_error_destroy(destroyed_error), PAGEJIT_INVALID_ARGUMENT);
  const auto* engine = as_handle<pagejit_error>(c_api::value_of(handles_.engine));
  for (const pagejit_error* none : {static_cast<const pagejit_error*>(nullptr),
                                    static_cast<const pagejit_error*>(destroyed_error), engine}) {
    EXPECT_EQ(pagejit_error_code(none), PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(
        pagejit_error_message(none),
        ::testing::AnyOf(::testing::HasSubstr("null"), ::testing::HasSubstr("no error object")));
    EXPECT_STREQ(pagejit_error_detail(none), "");
    EXPECT_STREQ(pagejit_error_spec(none), "");
    EXPECT_STREQ(pagejit_error_log(none), "");
    EXPECT_STREQ(pagejit_error_options(none), "");
    EXPECT_STREQ(pagejit_error_source(none), "");
    EXPECT_EQ(pagejit_error_cuda_result(none), 0);
  }
  pagejit_error* fresh = nullptr;
  EXPECT_EQ(pagejit_error_create(&fresh), PAGEJIT_OK);
  EXPECT_EQ(pagejit_error_code(fresh), PAGEJIT_OK);
  EXPECT_STREQ(pagejit_error_message(fresh), "");
  EXPECT_EQ(pagejit_error_destroy(fresh), PAGEJIT_OK);
}

}  // namespace pagejit
