// The template files, by their path below templates/.
// Thread-safety: const access.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace pagejit {

using TemplateSet = std::map<std::string, std::string_view, std::less<>>;

// The files this library was built with; they live as long as the program.
const TemplateSet& embedded_templates();

}  // namespace pagejit
