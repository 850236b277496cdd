// parse_any_spec on any bytes: what it accepts has a canonical text that comes back as the same
// spec.
#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tests/fuzz/fuzz_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = pagejit::parse_any_spec(text);
  if (!spec) {
    FUZZ_CHECK(spec.status().code() == pagejit::StatusCode::kInvalidArgument ||
               spec.status().code() == pagejit::StatusCode::kUnsupported);
    FUZZ_CHECK(!spec.status().message().empty());
    return 0;
  }
  const std::string canonical = pagejit::text_of(*spec);
  const auto again = pagejit::parse_any_spec(canonical);
  FUZZ_CHECK(again.is_ok() && pagejit::text_of(*again) == canonical);
  return 0;
}
