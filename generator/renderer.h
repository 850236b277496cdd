// The renderer: configuration -> source text, from the templates. Pure: reads no file, no clock, no
// environment. Thread-safety: free functions without state.
#pragma once

#include <string_view>

#include "generator/config.h"
#include "generator/template_set.h"

namespace pagejit {

// The text from this line on is the same to the byte for a GPU and for the host.
inline constexpr std::string_view kKernelTextMarker =
    "// ==== kernel text: the same for every target; only the device functions above differ ====";

// Other templates than the embedded ones are for tests that plant a bug.
Result<KernelSource> render(const AnyConfig& config,
                            const TemplateSet& templates = embedded_templates());

// Any other kernel text behind the device functions of `target`, as in a rendered source: for tests
// of those functions. `pdl`: with those of programmatic dependent launch.
Result<std::string> with_device_functions(const Target& target, std::string_view kernel_text,
                                          bool pdl = false,
                                          const TemplateSet& templates = embedded_templates());

}  // namespace pagejit
