// What the planner knows of each GPU architecture, and which targets pagejit serves.
// Thread-safety: constant data.
#pragma once

#include <span>

#include "pagejit/status.h"
#include "pagejit/target.h"

namespace pagejit {

// The first with cp.async, mma.m16n8k16 and products of bf16; those before it have their own device
// functions.
constexpr int kFirstAsyncCopySm = 80;

// Limits per SM and per CTA: CUDA C++ Programming Guide 13.0, table "Technical specifications per
// compute capability".
struct Arch {
  int sm;                    // compute capability, major * 10 + minor
  int shared_bytes_per_sm;   // the SM's shared memory
  int shared_bytes_per_cta;  // opt-in maximum of one CTA
  int max_warps_per_sm;
  double bandwidth_bytes_per_us;  // read bandwidth of one SM, of the fastest common GPU with this
                                  // capability
  double clock_ghz;               // its boost clock
  const char* bandwidth_source;   // which GPU, bandwidth / SMs
  bool has_exact_variant;         // 'a' targets exist
  bool has_family_variant;        // 'f' targets exist

  // K and V are copied by cp.async; else a warp that copies waits for what it loads.
  bool has_async_copy() const { return sm >= kFirstAsyncCopySm; }
  bool has_bf16_products() const { return sm >= kFirstAsyncCopySm; }

  // 64 Ki 32-bit registers on every architecture served.
  static constexpr int kRegistersPerSm = 65536;
  static constexpr int kMaxRegistersPerThread = 255;
  // Shared memory that the system keeps per resident CTA, from sm_80 on.
  static constexpr int kReservedSharedPerCta = 1024;
};

std::span<const Arch> known_archs();

// Whether a kernel for programmatic dependent launch (`asked`) can be made for `target`.
// kUnsupported before sm_90.
Status check_pdl(bool asked, const Target& target);

// The row of a target (of the configured architecture for "host"). kUnsupported with the known ones
// for others.
Result<Arch> arch_of(const Target& target);

}  // namespace pagejit
