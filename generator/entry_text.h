// EntryText: what the renderer needs to know of a configuration's family. Each family has an
// overload of entry_text(); the renderer does the rest alike for all. Thread-safety: plain values,
// free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "generator/config.h"
#include "generator/text_conditions.h"
#include "generator/text_template.h"

namespace pagejit {

struct EntryText {
  std::string_view file;    // the template with the holes, below templates/
  std::string kernel_name;  // extern "C" symbol
  // Comment lines in front of the kernel text. They name no target and no version: they belong to
  // the kernel text.
  std::string banner;
  TemplateValues values;       // for the holes
  TextSwitches switches = {};  // what the templates may ask with #if
  bool pdl = false;            // takes the device functions of programmatic dependent launch
};

EntryText entry_text(const KernelConfig& config);

}  // namespace pagejit
