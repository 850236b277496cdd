// parse_metadata on any bytes: what it accepts is written back as the same bytes.
#include "runtime/metadata.h"
#include "tests/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view blob(reinterpret_cast<const char*>(data), size);
  const pagejit::Result<pagejit::KernelMetadata> metadata = pagejit::parse_metadata(blob);
  if (!metadata) {
    FUZZ_CHECK(metadata.status().code() == pagejit::StatusCode::kDataCorrupt);
    FUZZ_CHECK(!metadata.status().message().empty());
    return 0;
  }
  FUZZ_CHECK(pagejit::encode_metadata(*metadata) == blob);
  return 0;
}
