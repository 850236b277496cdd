// The element types of tensors that kernels read and write, and where those of a KV block lie: what
// host and device agree on. Plain C++20 without includes.
#pragma once

// Set by the device preludes; host code needs no marker.
#ifndef PAGEJIT_HOST_DEVICE
#define PAGEJIT_HOST_DEVICE
#endif

namespace pagejit_shared {

// The same numbers as pagejit::DataType.
enum class Element : int {
  kFloat16 = 0,
  kBFloat16 = 1,
  kFloat32 = 2,
  kFloat8E4m3 = 3,
  kFloat8E5m2 = 4,
  kInt8 = 5,
  kInt4 = 6,  // two in a byte, the element of even index in its low half
};

// Of int4, of two elements.
PAGEJIT_HOST_DEVICE constexpr int element_bytes(Element element) {
  if (element == Element::kFloat32) return 4;
  return element == Element::kFloat16 || element == Element::kBFloat16 ? 2 : 1;
}
// Elements in element_bytes().
PAGEJIT_HOST_DEVICE constexpr int elements_per_unit(Element element) {
  return element == Element::kInt4 ? 2 : 1;
}
// Bytes of so many elements, of int4 an even number.
PAGEJIT_HOST_DEVICE constexpr long long elements_bytes(Element element, long long count) {
  return count / elements_per_unit(element) * element_bytes(element);
}

// Where the elements of a KV block lie.
enum class KvLayout : int {
  kRows,  // those of a token and head follow each other
  kVllm,  // K [head_size / x, block_size, x] of a block and head, x elements in 16 bytes; V
          // [head_size, block_size]
  kDsMla,  // rows of kDsMlaRowBytes, as kDsMlaGroup and the constants behind it say
};

// A row of KvLayout::kDsMla (vLLM: fp8_ds_mla) holds kDsMlaLatent codes of e4m3, from kDsMlaScales on
// an f32 scale for each kDsMlaGroup of them, and from kDsMlaRope on bf16. Bytes, but for the first
// two, which count elements.
constexpr int kDsMlaGroup = 128;
constexpr int kDsMlaLatent = 512;
constexpr int kDsMlaScales = kDsMlaLatent;
constexpr int kDsMlaRope = kDsMlaScales + 4 * kDsMlaLatent / kDsMlaGroup;
constexpr int kDsMlaRopeElements = 64;
constexpr int kDsMlaRowBytes = kDsMlaRope + 2 * kDsMlaRopeElements;
static_assert(kDsMlaRowBytes == 656);

// The most elements, a power of two, that one access of at most 16 bytes moves, so that they divide
// `count`.
PAGEJIT_HOST_DEVICE constexpr int vector_elements(int bytes_per_element, int count) {
  int elements = 16 / bytes_per_element;
  while (count % elements != 0) elements /= 2;
  return elements;
}

}  // namespace pagejit_shared
