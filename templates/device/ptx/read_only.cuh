// Loads of what nobody writes meanwhile.
#pragma once

namespace dev {

// For memory that no thread of this launch writes.
template <class T>
PAGEJIT_DEVICE T load_global_nc(const T* p) {
  RawWord<sizeof(T)> word;
  word.load_nc(p);
  return __builtin_bit_cast(T, word);
}

}  // namespace dev
