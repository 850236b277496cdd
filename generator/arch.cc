#include "generator/arch.h"

#include <string>

namespace pagejit {
namespace {

constexpr int kKib = 1024;

// Bandwidths are data-sheet figures over the number of SMs, but for sm_90, where reads were seen to
// reach 4.2 TB/s. sm_88 and sm_110 have no public data sheet with every figure: the smaller shared
// memory of their neighbours is taken.
constexpr Arch kArchs[] = {
    {75, 64 * kKib, 64 * kKib, 32, 616e3 / 68, 1.55, "RTX 2080 Ti: 0.62 TB/s / 68 SMs", false,
     false},
    {80, 164 * kKib, 163 * kKib, 64, 2039e3 / 108, 1.41, "A100 80 GB: 2.04 TB/s / 108 SMs", false,
     false},
    {86, 100 * kKib, 99 * kKib, 48, 936e3 / 82, 1.70, "RTX 3090: 0.94 TB/s / 82 SMs", false, false},
    {87, 164 * kKib, 163 * kKib, 48, 205e3 / 16, 1.30, "AGX Orin: 0.20 TB/s / 16 SMs", false,
     false},
    {88, 100 * kKib, 99 * kKib, 48, 205e3 / 16, 1.30,
     "taken as sm_87 with the shared memory of sm_86", false, false},
    {89, 100 * kKib, 99 * kKib, 48, 1008e3 / 128, 2.52, "RTX 4090: 1.01 TB/s / 128 SMs", false,
     false},
    {90, 228 * kKib, 227 * kKib, 64, 4200e3 / 132, 1.98, "H200: 4.2 TB/s / 132 SMs", true, false},
    {100, 228 * kKib, 227 * kKib, 64, 8000e3 / 148, 1.97, "B200: 8.0 TB/s / 148 SMs", true, true},
    {103, 228 * kKib, 227 * kKib, 64, 8000e3 / 160, 1.97, "B300: 8.0 TB/s / 160 SMs", true, true},
    {110, 228 * kKib, 227 * kKib, 48, 273e3 / 20, 1.57, "Thor: 0.27 TB/s / 20 SMs", true, true},
    {120, 100 * kKib, 99 * kKib, 48, 1792e3 / 170, 2.41, "RTX 5090: 1.79 TB/s / 170 SMs", true,
     true},
    {121, 100 * kKib, 99 * kKib, 48, 273e3 / 48, 2.42, "GB10: 0.27 TB/s / 48 SMs", true, true},
};

std::string known_list() {
  std::string text;
  for (const Arch& arch : kArchs) {
    if (!text.empty()) text += ", ";
    text += "sm_" + std::to_string(arch.sm);
    if (arch.has_exact_variant) text += "[a]";
    if (arch.has_family_variant) text += "[f]";
  }
  return text;
}

}  // namespace

std::span<const Arch> known_archs() { return kArchs; }

Result<Arch> arch_of(const Target& target) {
  for (const Arch& arch : kArchs) {
    if (arch.sm != target.sm) continue;
    const bool bad_variant = (target.variant == TargetVariant::kExact && !arch.has_exact_variant) ||
                             (target.variant == TargetVariant::kFamily && !arch.has_family_variant);
    if (bad_variant) break;
    return arch;
  }
  return Status(
      StatusCode::kUnsupported,
      "target " + target.to_string() + ": not known; legal are " + known_list() + " and host");
}

Status check_pdl(bool asked, const Target& target) {
  constexpr int kFirstSm = 90;  // griddepcontrol (PTX ISA)
  if (!asked || target.sm >= kFirstSm) return {};
  return Status(StatusCode::kUnsupported,
                "pdl 1: must be 0 for " + target.to_string() +
                    "; programmatic dependent launch is there from sm_90 on");
}

}  // namespace pagejit
