// Every C function with every kind of bad argument (bad_arguments.h), and those that have rules of
// their own: _init, _destroy, what returns no status, texts, fields.
#include "tests/c_api/bad_arguments.h"

namespace pagejit {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class BadArgumentsTest : public CApiTest {
 protected:
  BadArgumentsTest() : bad(handles), destroyed_error(bad.destroyed_error) {}

  BadArguments bad;
  pagejit_error* destroyed_error;
};

TEST_F(BadArgumentsTest, EveryFunctionRefusesEveryBadArgumentAndWritesNothing) {
  bad.check_each_function();
}

class DestroyTest : public BadArgumentsTest {
 protected:
  template <class T>
  void check_destroy(const char* name, pagejit_status (*destroy)(T*, pagejit_error*)) {
    SCOPED_TRACE(name);
    EXPECT_EQ(destroy(nullptr, error), PAGEJIT_OK) << "as free()";
    T* live = handles.of<T>();
    EXPECT_EQ(destroy(live, destroyed_error), PAGEJIT_INVALID_ARGUMENT) << "and does nothing";
    EXPECT_EQ(outcome(destroy(live, error)), "");
    EXPECT_EQ(destroy(live, error), PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(message(), HasSubstr("it was destroyed"));
    EXPECT_EQ(destroy(as_handle<T>(c_api::value_of(error)), error), PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(message(), HasSubstr("this is a pagejit_error"));
    EXPECT_EQ(destroy(as_handle<T>(0x7fff12345678), error), PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(message(), HasSubstr("is no handle"));
  }
};

TEST_F(DestroyTest, EachKindIsDestroyedOnceAndNothingElse) {
#define PAGEJIT_CHECK(function) check_destroy(#function, function);
  PAGEJIT_C_DESTROY_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
}

class InitTest : public ::testing::Test {
 protected:
  template <class Struct>
  void check_init(const char* name, pagejit_status (*init)(Struct*, size_t)) {
    SCOPED_TRACE(name);
    EXPECT_EQ(init(nullptr, sizeof(Struct)), PAGEJIT_INVALID_ARGUMENT);
    Grown<Struct> grown;
    std::memset(static_cast<void*>(&grown), 0x5a, sizeof grown);
    const Grown<Struct> before = grown;
    for (const size_t size : {size_t{0}, size_t{4}, sizeof(Struct) - 1, size_t{1} << 40}) {
      EXPECT_EQ(init(&grown.value, size), PAGEJIT_INVALID_ARGUMENT) << size;
      EXPECT_EQ(std::memcmp(&grown, &before, sizeof grown), 0) << "something was written";
    }
    EXPECT_EQ(init(&grown.value, sizeof(Struct)), PAGEJIT_OK);
    EXPECT_EQ(grown.value.struct_size, sizeof(Struct));
    EXPECT_EQ(std::memcmp(grown.tail, before.tail, sizeof grown.tail), 0) << "beyond its size";
    EXPECT_EQ(init(&grown.value, sizeof(Struct) + 8), PAGEJIT_OK) << "of a newer version";
    EXPECT_EQ(grown.value.struct_size, sizeof(Struct) + 8);
    EXPECT_EQ(std::string(grown.tail, 8), std::string(8, '\0'));
  }
};

TEST_F(InitTest, SetsWhatTheCallersStructHasAndNoMore) {
#define PAGEJIT_CHECK(function) check_init(#function, function);
  PAGEJIT_C_INIT_FUNCTIONS(PAGEJIT_CHECK)
#undef PAGEJIT_CHECK
}

// Those that return no status.
TEST_F(BadArgumentsTest, ValuesOfNothingLegalAreZeroOrSaySo) {
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

TEST_F(BadArgumentsTest, ErrorObjectsThatAreNoneSaySo) {
  EXPECT_EQ(pagejit_error_create(nullptr), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_EQ(pagejit_error_destroy(nullptr), PAGEJIT_OK);
  EXPECT_EQ(pagejit_error_destroy(destroyed_error), PAGEJIT_INVALID_ARGUMENT);
  const auto* engine = as_handle<pagejit_error>(c_api::value_of(handles.engine));
  for (const pagejit_error* none : {static_cast<const pagejit_error*>(nullptr),
                                    static_cast<const pagejit_error*>(destroyed_error), engine}) {
    EXPECT_EQ(pagejit_error_code(none), PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(pagejit_error_message(none),
                AnyOf(HasSubstr("null"), HasSubstr("no error object")));
    EXPECT_STREQ(pagejit_error_detail(none), "");
    EXPECT_STREQ(pagejit_error_spec(none), "");
    EXPECT_STREQ(pagejit_error_log(none), "");
    EXPECT_STREQ(pagejit_error_options(none), "");
    EXPECT_STREQ(pagejit_error_source(none), "");
    EXPECT_EQ(pagejit_error_cuda_result(none), 0);
  }
  EXPECT_EQ(pagejit_error_code(error), PAGEJIT_OK);
  EXPECT_STREQ(pagejit_error_message(error), "");
}

// Texts: a query, a buffer that is too small, one that fits to the byte.
TEST_F(BadArgumentsTest, ATextThatDoesNotFitTellsItsLengthAndWritesNothingElse) {
  size_t length = 0;
  EXPECT_EQ(pagejit_kernel_spec_canonical_text(&specs.kernel, nullptr, 0, &length, error), 0);
  const std::string text = canonical_text(KernelSpec{});
  EXPECT_EQ(length, text.size());
  std::string buffer(text.size() + 1, 'x');
  for (const size_t size : {size_t{0}, size_t{1}, text.size()}) {
    length = 0;
    EXPECT_EQ(
        pagejit_kernel_spec_canonical_text(&specs.kernel, buffer.data(), size, &length, error),
        PAGEJIT_INVALID_ARGUMENT);
    EXPECT_THAT(message(), HasSubstr("buffer_size " + std::to_string(size) + ": must be at least " +
                                     std::to_string(text.size() + 1)));
    EXPECT_EQ(length, text.size());
    EXPECT_EQ(buffer, std::string(text.size() + 1, 'x'));
  }
  EXPECT_EQ(pagejit_kernel_spec_canonical_text(&specs.kernel, buffer.data(), buffer.size(), nullptr,
                                               error),
            PAGEJIT_OK);
  EXPECT_STREQ(buffer.c_str(), text.c_str());
}

// Fields that hold a number of an enumeration, 0 or 1, or nothing yet.
TEST_F(BadArgumentsTest, FieldsOfNoLegalNumberAreNamed) {
  auto refused = [&](pagejit_status status, const std::string& sentence) {
    EXPECT_EQ(pagejit_kernel_spec_validate(&specs.kernel, error), status);
    EXPECT_THAT(message(), HasSubstr(sentence));
    pagejit_kernel_spec_init(&specs.kernel, sizeof specs.kernel);
  };
  specs.kernel.q_dtype = 256 + PAGEJIT_DTYPE_BF16;  // cut down to 8 bits it would be legal
  refused(PAGEJIT_INVALID_ARGUMENT, "pagejit_kernel_spec.q_dtype 257: must be in [0, 6]");
  specs.kernel.kv_table = -1;
  refused(PAGEJIT_INVALID_ARGUMENT, "pagejit_kernel_spec.kv_table -1: must be in [0, 4]");
  specs.kernel.window = 2;
  refused(PAGEJIT_INVALID_ARGUMENT, "pagejit_kernel_spec.window 2: must be 0 or 1");
  specs.cache_write.reserved = 1;
  EXPECT_EQ(pagejit_cache_write_spec_validate(&specs.cache_write, error), PAGEJIT_UNSUPPORTED);
  EXPECT_THAT(message(), HasSubstr("a reserved field is 1"));
  specs.cascade.attention = nullptr;
  EXPECT_EQ(pagejit_cascade_spec_validate(&specs.cascade, error), PAGEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(message(), HasSubstr("pagejit_kernel_spec: null"));
}

TEST_F(BadArgumentsTest, TheLevelsOfACascadeHaveOneSizeAndAreNamed) {
  pagejit_cascade_level levels[2];
  for (auto& level : levels) pagejit_cascade_level_init(&level, sizeof level);
  pagejit_cascade_args args;
  pagejit_cascade_args_init(&args, sizeof args);
  args.levels = levels;
  args.num_levels = 2;
  levels[1].struct_size = 8;
  EXPECT_EQ(pagejit_cascade_kernel_launch(handles.cascade, &args, nullptr, error),
            PAGEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(message(), HasSubstr("levels[1].struct_size 8: must be that of levels[0]"));
  levels[0].struct_size = 8;
  EXPECT_EQ(pagejit_cascade_kernel_launch(handles.cascade, &args, nullptr, error),
            PAGEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(message(), HasSubstr("levels[0]: pagejit_cascade_level.struct_size 8"));
}

}  // namespace
}  // namespace pagejit
