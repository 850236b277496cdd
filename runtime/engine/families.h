// The families of small kernels, for code that is instantiated for each of them. Attention and what
// consists of several kernels are not among them. Thread-safety: a macro.
#pragma once

// PAGEJIT_EACH_FAMILY(DO) is DO(Spec) for each.
#define PAGEJIT_EACH_FAMILY(DO) \
  DO(MergeStatesSpec)           \
  DO(CacheWriteSpec)            \
  DO(CopyBlocksSpec)            \
  DO(GatherCacheSpec)           \
  DO(ConvertFloat8Spec)         \
  DO(MlaCacheWriteSpec)         \
  DO(IndexKeyWriteSpec)         \
  DO(IndexKeyGatherSpec)        \
  DO(IndexLogitsSpec)           \
  DO(TopKSpec)
