// The combinations of data types that a spec may have, for tests that run over them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pagejit/spec.h"

namespace pagejit {

struct ElementTypes {
  DataType q;
  DataType kv;
  DataType out;

  void put_into(KernelSpec& spec) const {
    spec.q_dtype = q;
    spec.kv_dtype = kv;
    spec.out_dtype = out;
  }
  bool has_8_bit_kv() const { return data_type_bytes(kv) == 1; }
};

inline std::vector<ElementTypes> legal_types() {
  constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBFloat16, DataType::kFloat32,
                                 DataType::kFloat8E4m3, DataType::kFloat8E5m2};
  std::vector<ElementTypes> legal;
  for (const DataType q : kTypes) {
    for (const DataType kv : kTypes) {
      for (const DataType out : kTypes) {
        KernelSpec spec;
        ElementTypes{q, kv, out}.put_into(spec);
        if (validate(spec)) legal.push_back({q, kv, out});
      }
    }
  }
  return legal;
}

// Those of different q and K, V.
inline std::vector<ElementTypes> legal_inputs() {
  std::vector<ElementTypes> inputs;
  for (const ElementTypes& types : legal_types()) {
    if (types.out == DataType::kBFloat16) inputs.push_back(types);
  }
  return inputs;
}

inline std::string element_types_name(const testing::TestParamInfo<ElementTypes>& test) {
  return "q_" + std::string(data_type_name(test.param.q)) + "_kv_" +
         std::string(data_type_name(test.param.kv)) + "_out_" +
         std::string(data_type_name(test.param.out));
}

}  // namespace pagejit
