// The public headers name only the standard library and each other. (That each compiles alone is
// checked by building public_headers.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

TEST(PublicHeadersTest, IncludeOnlyTheStandardLibraryAndEachOther) {
  // C++20 headers and C's <std*.h>; no folder, so neither <spdlog/...> nor <cuda.h>.
  const std::regex include("\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*");
  const std::set<std::string> c_headers = {"stddef.h", "stdint.h"};
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(PAGEJIT_PUBLIC_HEADERS)) {
    ++files;
    std::ifstream stream(file.path());
    std::smatch match;
    for (std::string line; std::getline(stream, line);) {
      if (!std::regex_match(line, match, include)) continue;
      const std::string name = match[2];
      if (match[1] == "\"") {
        EXPECT_EQ(name.rfind("pagejit/", 0), 0u) << file.path() << ": " << name;
      } else {
        EXPECT_TRUE(name.find_first_of("./") == std::string::npos || c_headers.count(name) == 1)
            << file.path() << ": " << name;
      }
    }
  }
  EXPECT_GE(files, 6);
}

}  // namespace
