// How this folder reads environment variables: through a function that the caller passes, so that
// tests and embedding programs decide what is seen. Thread-safety: the functions keep no state;
// process_environment() reads the process's own variables, which must not be changed by another
// thread meanwhile.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagejit {

// The value of a variable, nullopt where it is unset.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment process_environment();

namespace jit {

// The parts of a colon-separated list that are not empty.
std::vector<std::string> split_path_list(std::string_view list);

}  // namespace jit
}  // namespace pagejit
