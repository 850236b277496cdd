// What the tests that compile share: the compiler, which targets it must know, and what it may say
// of a kernel.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "generator/arch.h"
#include "runtime/jit/compiler.h"

namespace pagejit {

// One for the program: its threads and the opened library are shared by all tests.
inline std::shared_ptr<Compiler> nvrtc() {
  static const std::shared_ptr<Compiler> compiler = make_nvrtc_compiler("");
  return compiler;
}

// Skips the test where NVRTC does not know the target. NVRTC 12.4, the oldest that is served, knows
// these: for them that is a failure.
inline void require_target(const Target& target) {
  constexpr int kAlwaysKnown[] = {75, 80, 86, 87, 89, 90};
  const Status status = nvrtc()->check_target(target);
  const bool may_be_unknown = std::find(std::begin(kAlwaysKnown), std::end(kAlwaysKnown),
                                        target.sm) == std::end(kAlwaysKnown);
  if (may_be_unknown && status.code() == StatusCode::kUnsupported) {
    GTEST_SKIP() << status.message();
  }
  ASSERT_TRUE(status) << status.to_string();
}

// Compiles a kernel without warnings of ptxas, static shared memory, spills and stack, but for
// `allowed_bytes`. Fails the test otherwise; an empty image where there is none.
inline CompiledImage compile_clean(const Result<KernelSource>& source, int allowed_bytes = 0) {
  EXPECT_TRUE(source) << source.status().to_string();
  if (!source) return {};
  Result<CompiledImage> compiled = nvrtc()->compile(*source);
  EXPECT_TRUE(compiled) << compiled.status().to_string() << "\n" << compiled.status().detail();
  if (!compiled) return {};
  const CompileReport& report = compiled->report;
  EXPECT_GT(compiled->image.size(), 1000u);
  EXPECT_GT(report.registers, 0) << "the log was not read:\n" << compiled->log;
  EXPECT_LE(report.spill_store_bytes, allowed_bytes);
  EXPECT_LE(report.spill_load_bytes, allowed_bytes);
  EXPECT_LE(report.stack_bytes, allowed_bytes);
  EXPECT_EQ(report.static_shared_bytes, 0) << "shared memory is one dynamic struct";
  EXPECT_TRUE(report.warnings.empty()) << report.warnings.front();
  return std::move(compiled).value();
}

// Every architecture that pagejit knows, as plain, a and f targets.
inline std::vector<Target> known_targets() {
  std::vector<Target> targets;
  for (const Arch& arch : known_archs()) {
    targets.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kPlain});
    if (arch.has_exact_variant) {
      targets.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kExact});
    }
    if (arch.has_family_variant) {
      targets.push_back({TargetKind::kCuda, arch.sm, TargetVariant::kFamily});
    }
  }
  return targets;
}

}  // namespace pagejit
