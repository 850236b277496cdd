// The layout of the C API, as it is for ever. An assertion that does not hold any more breaks
// programs that were compiled before; new fields and enumerators get new lines, and a struct that
// grew a new size. Compiling this file is the test. Other tests read the same lists
// (fields_test.cc, check_numbers.sh).
#include "pagejit/pagejit.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " changed its size")
#define FIELD(type, field, bytes) \
  _Static_assert(offsetof(type, field) == (bytes), #type "." #field " moved")
#define NUMBER(name, value, of_cpp) _Static_assert((name) == (value), #name " changed its number")
#define CONSTANT(name, value) _Static_assert((name) == (value), #name " changed its number")

#include "tests/c_api/layout_attention.inc"
#include "tests/c_api/layout_cache.inc"
#include "tests/c_api/layout_engine.inc"
#include "tests/c_api/layout_numbers.inc"

_Static_assert(sizeof(pagejit_status) == 4, "pagejit_status changed its size");
