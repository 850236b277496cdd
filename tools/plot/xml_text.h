// Text that becomes part of XML or HTML: names, source lines, messages. Not a writer of documents.
// Thread-safety: free functions without state.
#pragma once

#include <string>
#include <string_view>

namespace pagejit::plot {

// For element content and for attribute values in either kind of quotes: & < > " ' become entities.
// Any bytes are legal: control characters but tab and line break, which XML 1.0 forbids, and bytes
// that are no UTF-8 become U+FFFD.
std::string escape_xml(std::string_view text);

}  // namespace pagejit::plot
