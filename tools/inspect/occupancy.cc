#include "tools/inspect/occupancy.h"

#include <algorithm>

#include "generator/arch.h"

namespace pagejit::inspect {
namespace {

constexpr int kWarpThreads = 32;
constexpr int kMaxThreadsPerCta = 1024;
constexpr int kSubPartitions = 4;           // of an SM, each with a quarter of the registers
constexpr int kRegistersAtOnce = 256;       // handed out to a warp
constexpr int kFirstBarrierLimitedSm = 90;  // before, all CTAs that fit have barriers enough

// What generator/arch.h does not know, since the planner needs none of it.
struct CtaLimits {
  int sm;
  int max_ctas;
  int barriers;  // of an SM
};
constexpr CtaLimits kLimits[] = {
    {75, 16, 32},  {80, 32, 64},  {86, 16, 16},  {87, 16, 16},  {89, 24, 24},  {90, 32, 64},
    {100, 32, 64}, {103, 32, 64}, {110, 24, 24}, {120, 24, 24}, {121, 24, 24},
};

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

int warps_of(const CtaResources& kernel) {
  return std::max(1, (kernel.threads + kWarpThreads - 1) / kWarpThreads);
}

int registers_of_warp(const CtaResources& kernel) {
  return round_up(kernel.registers * kWarpThreads, kRegistersAtOnce);
}

int ctas_by_registers(const CtaResources& kernel) {
  const int of_warp = registers_of_warp(kernel);
  const int warps = warps_of(kernel);
  if (kernel.registers > Arch::kMaxRegistersPerThread) return 0;
  if (of_warp == 0) return Occupancy::kUnlimited;
  return Arch::kRegistersPerSm / kSubPartitions / of_warp * kSubPartitions / warps;
}

void name_limit(Occupancy* result) {
  const auto add = [&](int limit, const char* name) {
    if (limit != result->ctas) return;
    result->limit += (result->limit.empty() ? "" : ", ") + std::string(name);
  };
  add(result->by_registers, "registers");
  add(result->by_shared, "shared memory");
  add(result->by_warps, "warps");
  add(result->by_ctas, "CTAs");
  add(result->by_barriers, "barriers");
}

}  // namespace

int allocated_registers(const CtaResources& kernel) {
  return registers_of_warp(kernel) * warps_of(kernel);
}

int allocated_shared_bytes(const CtaResources& kernel, int sm) {
  const bool is_turing = sm < 80;
  return round_up(kernel.shared_bytes + (is_turing ? 0 : Arch::kReservedSharedPerCta),
                  is_turing ? 256 : 128);
}

Result<Occupancy> occupancy_of(const CtaResources& kernel, int sm) {
  const Result<Arch> arch = arch_of({.sm = sm});
  const auto* limits = std::find_if(std::begin(kLimits), std::end(kLimits),
                                    [&](const CtaLimits& row) { return row.sm == sm; });
  if (!arch || limits == std::end(kLimits)) {
    return Status(StatusCode::kUnsupported, "compute capability " + std::to_string(sm / 10) + "." +
                                                std::to_string(sm % 10) +
                                                ": its limits of CTAs per SM are not known");
  }
  Occupancy result;
  result.max_warps = arch->max_warps_per_sm;
  result.by_ctas = limits->max_ctas;
  result.by_warps = kernel.threads > kMaxThreadsPerCta ? 0 : result.max_warps / warps_of(kernel);
  result.by_registers = ctas_by_registers(kernel);
  const int shared = allocated_shared_bytes(kernel, sm);
  result.by_shared = kernel.shared_bytes > arch->shared_bytes_per_cta ? 0
                     : shared == 0                                    ? Occupancy::kUnlimited
                                   : arch->shared_bytes_per_sm / shared;
  result.by_barriers = sm >= kFirstBarrierLimitedSm && kernel.barriers > 0
                           ? limits->barriers / kernel.barriers
                           : Occupancy::kUnlimited;
  result.ctas = std::min(
      {result.by_registers, result.by_shared, result.by_warps, result.by_ctas, result.by_barriers});
  result.warps = result.ctas * warps_of(kernel);
  name_limit(&result);
  return result;
}

}  // namespace pagejit::inspect
