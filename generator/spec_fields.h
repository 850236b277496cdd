// The fields of every family's spec by name: what texts and manifests are read with. Which values
// go together is validate()'s answer, not these tables'. Thread-safety: constant data.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "generator/config.h"

namespace pagejit {

template <class Spec>
struct SpecField {
  std::string_view name;    // in a canonical text; "" where it is the text's first word
  std::string_view member;  // in the struct, as validate() calls it
  std::variant<int Spec::*, bool Spec::*, DataType Spec::*, QueryLengths Spec::*, Causality Spec::*,
               KvTable Spec::*, KvLayout Spec::*, KvScale Spec::*, RopeStyle Spec::*,
               MlaFormat Spec::*>
      pointer;
};

// All fields of the family, in the order of its texts.
template <class Spec>
std::span<const SpecField<Spec>> fields_of();

template <>
std::span<const SpecField<KernelSpec>> fields_of();
template <>
std::span<const SpecField<MergeStatesSpec>> fields_of();
template <>
std::span<const SpecField<CacheWriteSpec>> fields_of();
template <>
std::span<const SpecField<CopyBlocksSpec>> fields_of();
template <>
std::span<const SpecField<GatherCacheSpec>> fields_of();
template <>
std::span<const SpecField<ConvertFloat8Spec>> fields_of();
template <>
std::span<const SpecField<MlaCacheWriteSpec>> fields_of();
template <>
std::span<const SpecField<IndexKeyWriteSpec>> fields_of();
template <>
std::span<const SpecField<IndexKeyGatherSpec>> fields_of();
template <>
std::span<const SpecField<TopKSpec>> fields_of();
template <>
std::span<const SpecField<IndexLogitsSpec>> fields_of();

}  // namespace pagejit
