// The layout of the C API, as it is for ever. An assertion that does not hold any more breaks
// programs that were compiled before; new fields and enumerators get new lines, and a struct that
// grew a new size. Compiling the layout_*_test.c is the test. Thread-safety: macros.
#pragma once

#include "pagejit/pagejit.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " changed its size")
#define FIELD(type, field, bytes) \
  _Static_assert(offsetof(type, field) == (bytes), #type "." #field " moved")
#define NUMBER(name, value) _Static_assert((name) == (value), #name " changed its number")
