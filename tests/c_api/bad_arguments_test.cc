// Every C function with every kind of bad argument (bad_arguments.h), and those that have rules of
// their own: _init, _destroy, what returns no status, texts, fields.
#include "tests/c_api/bad_arguments.h"

namespace pagejit {
namespace {

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

TEST_F(BadArgumentsTest, InitSetsWhatTheCallersStructHasAndNoMore) { bad.check_init_functions(); }

TEST_F(BadArgumentsTest, ValuesOfNothingLegalAreZeroOrSaySo) { bad.check_value_functions(); }

TEST_F(BadArgumentsTest, ErrorObjectsThatAreNoneSaySo) { bad.check_error_functions(); }

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
