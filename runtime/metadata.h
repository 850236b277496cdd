// KernelMetadata: what a cache entry says of its kernel, as the text blob that cache/ stores
// without looking into it. Grammar: lines "name=value\n" in exactly the order of the fields below,
// after the line "pagejit-kernel 3\n"; then "log=<bytes>\n<that many bytes>\nend\n". Decimal
// numbers without sign, space or leading zero. Times in microseconds. Thread-safety: free functions
// without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "generator/config.h"
#include "pagejit/status.h"

namespace pagejit {

struct KernelMetadata {
  std::string spec;    // canonical_text of the spec
  std::string target;  // Target::to_string
  std::string symbol;  // the kernel's extern "C" name
  std::string abi;     // parameter_abi() of the library that made the entry
  // Which compiler, for people and for is_newer_compiler(): "NVRTC 13.0", "g++ (Debian 12.2.0-14)
  // 12.2.0". Not its identity, which is in the key.
  std::string compiler;
  uint32_t threads_per_cta = 0;
  uint32_t dynamic_shared_bytes = 0;
  uint32_t pdl = 0;  // 1: the kernel waits for the one before it, and is launched so that it may
  uint32_t static_shared_bytes = 0;
  uint32_t registers = 0;
  uint32_t spill_store_bytes = 0;
  uint32_t spill_load_bytes = 0;
  uint32_t stack_bytes = 0;
  uint64_t compile_us = 0;
  std::string log;  // the compiler's log, shortened to kMaxMetadataLog

  bool operator==(const KernelMetadata&) const = default;
};

// Enough for ptxas's report of one kernel; a log with hundreds of warnings is cut.
constexpr size_t kMaxMetadataLog = 4096;

// Line breaks in the first five fields are replaced by spaces; the log is shortened to
// kMaxMetadataLog.
std::string encode_metadata(const KernelMetadata& metadata);

// kDataCorrupt says where the grammar is not met. Any byte string is legal input.
Result<KernelMetadata> parse_metadata(std::string_view blob);

// The same without what differs between two compiles of one source by one compiler: compile_us is
// 0, which stands for "not known", and there is no log, since ptxas tells times in it and a C++
// compiler names of temporary files. For bundles, which are the same bytes wherever and however
// often they are made. kDataCorrupt as parse_metadata().
Result<std::string> reproducible_metadata(std::string_view blob);
// Orders KernelMetadata::compiler: runs of digits compare as numbers, the rest byte by byte, so
// that NVRTC 12.10 is newer than NVRTC 12.9. What orders two different compilers is without a
// meaning, but always the same.
bool is_newer_compiler(std::string_view a, std::string_view b);

// Names the layout of the launch parameters (and of the workspace, where there is one) that this
// library was built with for kernels of that family; a kernel of another layout must not be
// launched.
std::string parameter_abi(const AnyConfig& config);

}  // namespace pagejit
