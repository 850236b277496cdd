// What the kernels around attention cost at least on a GPU: they have no problem of fixed sizes,
// but each moves so many bytes, and makes so many products, for one unit of its work, say a token
// of one KV head. A limit and no prediction. Thread-safety: plain values and free functions.
#pragma once

#include <string>
#include <vector>

#include "generator/config.h"
#include "tools/inspect/gpu_table.h"

namespace pagejit::inspect {

// Bytes that memory moves at least, and products (with their sums: two operations each) that tensor
// cores make. The formulas have the spec's numbers in them.
struct UnitWork {
  std::string unit = "";  // "token and KV head"
  std::string read = "";  // "(128 + 128) x 2 B"
  double read_bytes = 0;
  std::string written = "";
  double written_bytes = 0;
  std::string operations = "";  // "": none
  double flops = 0;
  std::string left_out = "";  // what is read beside these, and is not counted; "": nothing

  double bytes() const { return read_bytes + written_bytes; }
};
// Of any configuration but attention's.
UnitWork unit_work(const AnyConfig& config);

struct UnitRoofline {
  UnitWork work;
  double memory_ns = 0;
  double compute_ns = 0;  // 0 where there are no products or the GPU's rate is not known

  double limit_ns() const { return memory_ns > compute_ns ? memory_ns : compute_ns; }
  bool is_memory_bound() const { return memory_ns >= compute_ns; }
};
UnitRoofline unit_roofline_of(const AnyConfig& config, const Gpu& gpu);

// The formulas, a line each.
std::string explain_unit_roofline(const UnitRoofline& roofline, const Gpu& gpu);

// What the formulas leave out and where the GPU's figures are from, a sentence each.
std::vector<std::string> unit_roofline_caveats(const UnitRoofline& roofline, const Gpu& gpu);

}  // namespace pagejit::inspect
