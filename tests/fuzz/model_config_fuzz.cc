// parse_model_config on any bytes: a shape that can be divided among GPUs and asked for kernels, or
// a sentence.
#include "tests/fuzz/fuzz_check.h"
#include "tools/models/layer_support.h"
#include "tools/models/model_config.h"
#include "tools/models/tensor_parallel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const pagejit::Result<pagejit::models::ModelShape> shape =
      pagejit::models::parse_model_config(json);
  if (!shape) {
    FUZZ_CHECK(!shape.status().message().empty());
    return 0;
  }
  FUZZ_CHECK(shape->num_layers > 0);
  size_t num_layers = 0;
  for (const auto& kind : shape->kinds) {
    FUZZ_CHECK(!kind.layers.empty());
    FUZZ_CHECK(kind.attention.num_kv_heads >= 0 && kind.attention.num_heads >= 0);
    FUZZ_CHECK(kind.attention.num_kv_heads == 0 || kind.attention.group_size() >= 1);
    num_layers += kind.layers.size();
  }
  FUZZ_CHECK(num_layers == static_cast<size_t>(shape->num_layers));
  FUZZ_CHECK(!describe_model(*shape).empty());
  for (const int degree : {1, 8}) {
    const auto divided = pagejit::models::apply_tensor_parallel(*shape, degree);
    FUZZ_CHECK(divided.is_ok() || !divided.status().message().empty());
    if (!divided) continue;
    for (const auto& kind : divided->kinds) {
      for (const auto queries : {pagejit::QueryLengths::kOne, pagejit::QueryLengths::kMany}) {
        const auto spec = spec_of_kind(*divided, kind, /*block_size=*/16, queries);
        FUZZ_CHECK(spec.is_ok() || !spec.status().message().empty());
      }
    }
  }
  return 0;
}
