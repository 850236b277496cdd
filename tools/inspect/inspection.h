// All that `pagejit inspect` finds out of one kernel: made here, written by inspection_text.h,
// inspection_json.h and inspection_page.h. Thread-safety: plain values and free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/config.h"
#include "runtime/jit/compiler.h"
#include "runtime/metadata.h"
#include "tools/inspect/cubin_file.h"
#include "tools/inspect/gpu_table.h"
#include "tools/inspect/occupancy.h"
#include "tools/inspect/roofline.h"
#include "tools/inspect/sass.h"
#include "tools/inspect/unit_roofline.h"

namespace pagejit::inspect {

// A kernel to look at. Only the image must be there.
struct Subject {
  std::string image;   // a cubin
  std::string origin;  // "compiled now by NVRTC 13.0", "kernel.cubin", "entry 3f9a0c..."
  std::optional<KernelSource> source;   // with its configuration
  std::optional<CompileReport> report;  // of the compile log
  // Where there is no configuration: of an entry's metadata, or as asked for.
  std::optional<int> threads;
  std::optional<int> dynamic_shared_bytes;
};

// A number and where it was read.
struct Sourced {
  int value = 0;
  std::string source;  // "compile log", "cubin", "configuration"; "" = not known
};

struct GpuOccupancy {
  Gpu gpu;
  Occupancy occupancy;
};

struct Inspection {
  std::string symbol;
  std::string origin;
  std::string tool;  // of the cubin
  Target target;
  std::optional<AnyConfig> config;
  std::string source;         // its text, "" where not known
  Sourced threads;            // of a CTA
  Sourced registers;          // of a thread
  Sourced spill_store_bytes;  // all of a thread; of SASS the instructions are counted instead
  Sourced spill_load_bytes;
  Sourced stack_bytes;
  Sourced static_shared_bytes;  // of a CTA
  Sourced dynamic_shared_bytes;
  Sourced barriers;
  uint64_t code_bytes = 0;
  std::vector<std::string> contradictions;  // between the log and the cubin, a sentence each
  std::vector<GpuOccupancy> occupancy;      // by GPU that it runs on; none without `threads`
  std::optional<Gpu> gpu;
  std::optional<Roofline> roofline;           // of attention kernels, on `gpu`
  std::optional<UnitRoofline> unit_roofline;  // of the others
  std::optional<SassListing> sass;
  std::string no_sass;  // why there is none

  const KernelSpec* attention_spec() const {
    const auto* attention = config ? std::get_if<KernelConfig>(&*config) : nullptr;
    return attention == nullptr ? nullptr : &attention->spec;
  }
  // Of the roofline; none where there is none.
  std::vector<std::string> caveats() const {
    if (unit_roofline) return unit_roofline_caveats(*unit_roofline, *gpu);
    if (!roofline) return {};
    return roofline_caveats(*roofline, std::get<KernelConfig>(*config), *gpu);
  }
  // What holds of the rows of `occupancy`, or why there are none, a sentence each.
  std::vector<std::string> occupancy_notes() const;
  CtaResources resources() const {
    return {threads.value, registers.value, static_shared_bytes.value + dynamic_shared_bytes.value,
            barriers.value};
  }
};

struct InspectOptions {
  std::string symbol = "";  // of a cubin with several kernels; "": the only one
  std::string gpu = "";     // "": the first that it runs on
  Problem problem = {};
  std::string nvdisasm = "";  // as find_disassembler()
  Environment environment = {};
};

// kDataCorrupt for an image that is no cubin; kNotFound for a kernel or a GPU that is not known;
// kUnsupported for a GPU that the kernel does not run on; kInvalidArgument for the problem. Where
// there is no disassembler, or it fails, the rest is there, and no_sass says why.
Result<Inspection> inspect(const Subject& subject, const InspectOptions& options);

}  // namespace pagejit::inspect
