// PAGEJIT_EXPORT: marks what libpagejit.so offers; everything else has hidden visibility.
#pragma once

#define PAGEJIT_EXPORT [[gnu::visibility("default")]]
// The same where a template is instantiated: clang takes no attribute in brackets there, and GCC 12
// takes none of this form beside [[nodiscard]].
#define PAGEJIT_EXPORT_INSTANCE __attribute__((visibility("default")))
