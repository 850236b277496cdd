// PAGEJIT_EXPORT: marks what libpagejit.so offers; everything else has hidden visibility.
#pragma once

#define PAGEJIT_EXPORT [[gnu::visibility("default")]]
