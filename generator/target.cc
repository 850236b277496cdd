#include "pagejit/target.h"

#include <charconv>

namespace pagejit {

std::string Target::to_string() const {
  if (is_host()) return sm == Target::host().sm ? "host" : "host_" + std::to_string(sm);
  if (variant == TargetVariant::kPtx) return "compute_" + std::to_string(sm);
  std::string text = "sm_" + std::to_string(sm);
  if (variant == TargetVariant::kExact) text += 'a';
  if (variant == TargetVariant::kFamily) text += 'f';
  return text;
}

namespace {

Status bad_target(std::string_view text) {
  return Status(
      StatusCode::kInvalidArgument,
      "target \"" + std::string(text) +
          "\": legal are sm_80, sm_90a, sm_100f and the like (also 90a, 9.0), compute_80 (PTX), "
          "host, host_80");
}

// Two or three digits of a compute capability.
bool parse_capability(std::string_view digits, int& sm) {
  if (digits.size() < 2 || digits.size() > 3 || digits[0] < '1' || digits[0] > '9') return false;
  const char* end = digits.data() + digits.size();
  return std::from_chars(digits.data(), end, sm).ptr == end;
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  Target target;
  if (text == "host") return Target::host();
  if (text.starts_with("host_")) {
    target.kind = TargetKind::kHost;
    if (!parse_capability(text.substr(5), target.sm)) return bad_target(text);
    return target;
  }
  if (text.starts_with("compute_")) {
    target.variant = TargetVariant::kPtx;
    if (!parse_capability(text.substr(8), target.sm)) return bad_target(text);
    return target;
  }
  std::string rest(text.starts_with("sm_") ? text.substr(3) : text);
  if (!rest.empty() && (rest.back() == 'a' || rest.back() == 'f')) {
    target.variant = rest.back() == 'a' ? TargetVariant::kExact : TargetVariant::kFamily;
    rest.pop_back();
  }
  if (const size_t dot = rest.find('.'); dot != std::string::npos) {
    if (dot == 0 || rest.size() - dot != 2) return bad_target(text);  // "9.0": one digit of minor
    rest.erase(dot, 1);
  }
  if (!parse_capability(rest, target.sm)) return bad_target(text);
  return target;
}

}  // namespace pagejit
