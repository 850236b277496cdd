// Every call of the command in a code block of a document can be parsed: what it names is there.
// Calls are parsed, not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/tools/cli/application.h"

namespace pagejit::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Call {
  int line = 0;  // from 1
  Words words;   // "pagejit" first
};

// PAGEJIT_JIT=error
bool is_assignment(const std::string& word) {
  const size_t name_end = word.find('=');
  return name_end != std::string::npos && name_end > 0 &&
         word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == name_end;
}

// Of a line of a shell the words of its call of pagejit, without what only a reader needs: a
// comment, brackets around what may be left out, "..." behind what may be repeated.
Words call_words(const std::string& line) {
  Words words;
  for (std::string word : split(line)) {
    if (word.front() == '#' || word == "|" || word == "&&" || word == ";" || word == "&" ||
        word.front() == '>') {
      break;
    }
    if (words.empty() && is_assignment(word)) continue;
    std::erase_if(word, [](char c) { return c == '[' || c == ']' || c == '"' || c == '\''; });
    while (word.ends_with("...")) word.resize(word.size() - 3);
    if (!word.empty()) words.push_back(word);
  }
  if (words.empty() || words.front() != "pagejit") return {};
  return words;
}

// A call for each choice of "a|b".
std::vector<Words> with_each_alternative(const Words& words) {
  std::vector<Words> calls = {{}};
  for (const std::string& word : words) {
    std::vector<Words> longer;
    std::istringstream alternatives(word);
    for (std::string alternative; std::getline(alternatives, alternative, '|');) {
      for (Words call : calls) {
        call.push_back(alternative);
        longer.push_back(std::move(call));
      }
    }
    calls = std::move(longer);
  }
  return calls;
}

// What stands in fences or is indented by four.
std::vector<Call> calls_of(const std::string& document) {
  std::vector<Call> calls;
  std::istringstream lines(document);
  bool is_fenced = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t indent = line.find_first_not_of(' ');
    if (indent != std::string::npos && line.compare(indent, 3, "```") == 0) {
      is_fenced = !is_fenced;
    } else if (is_fenced || line.starts_with("    ")) {
      const Words words = call_words(line);
      if (words.empty()) continue;
      for (Words& call : with_each_alternative(words)) calls.push_back({number, std::move(call)});
    }
  }
  return calls;
}

// "" where the parser takes it.
std::string complaint(const Call& call) {
  Application fresh;
  Words backwards(call.words.rbegin(), call.words.rend() - 1);  // as CLI11 wants them
  std::string wrong = "would have run";
  try {
    fresh.app().parse(std::move(backwards));
  } catch (const CLI::Success&) {
    wrong.clear();
  } catch (const CLI::ParseError& error) {
    wrong = error.what();
  }
  // What is required may be missing because its name is misspelt; --help hides such a name.
  const std::string unknown = unknown_word(fresh.app());
  return unknown.empty() ? wrong : unknown;
}

TEST(DocumentedCommandsTest, CallsAreFoundInCodeAlone) {
  const std::vector<Call> calls = calls_of(R"(pagejit is a library.
    pagejit version   # a comment
    PAGEJIT_TUNED=on PAGEJIT_JIT=error pagejit version | head
```
pagejit bundle merge A B... -o OUT && echo
```
pagejit is no call here.
    pagejit key|cache [--json]
    program pagejit version
)");
  ASSERT_EQ(calls.size(), 5u);
  EXPECT_EQ(calls[0].line, 2);
  EXPECT_THAT(calls[0].words, ElementsAre("pagejit", "version"));
  EXPECT_EQ(calls[1].line, 3);
  EXPECT_THAT(calls[1].words, ElementsAre("pagejit", "version"));
  EXPECT_EQ(calls[2].line, 5);
  EXPECT_THAT(calls[2].words, ElementsAre("pagejit", "bundle", "merge", "A", "B", "-o", "OUT"));
  EXPECT_THAT(calls[3].words, ElementsAre("pagejit", "key", "--json"));
  EXPECT_THAT(calls[4].words, ElementsAre("pagejit", "cache", "--json"));
}

TEST(DocumentedCommandsTest, WrongWordsAreComplainedOf) {
  const auto complaint_of = [](const std::string& line) {
    const std::vector<Call> calls = calls_of("    " + line);
    return calls.empty() ? "not found" : complaint(calls.back());
  };
  EXPECT_EQ(complaint_of("pagejit key --head-size 64 --group-size 2 --arch sm_80"), "");
  EXPECT_EQ(complaint_of("pagejit cache --help"), "");
  EXPECT_THAT(complaint_of("pagejit key --head-sise 64"), HasSubstr("--head-sise"));
  EXPECT_THAT(complaint_of("pagejit cache list"), HasSubstr("list"));
  EXPECT_THAT(complaint_of("pagejit cache"), HasSubstr("subcommand is required"));
  EXPECT_THAT(complaint_of("pagejit cache ls|list"), HasSubstr("list"));
  EXPECT_THAT(complaint_of("pagejit cache list --help"), HasSubstr("list"));
  EXPECT_THAT(complaint_of("pagejit key --group-size many"), HasSubstr("--group-size"));
  EXPECT_THAT(complaint_of("pagejit precompile --arch sm_9"), HasSubstr("sm_9"));
  EXPECT_NE(complaint_of("pagejit bundle ls"), "");
}

TEST(DocumentedCommandsTest, EveryCallInADocumentCanBeParsed) {
  const fs::path root = PAGEJIT_TEST_SOURCE_DIR;
  int num_documents = 0, num_calls = 0;
  auto entry = fs::recursive_directory_iterator(root);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path& path = entry->path();
    const std::string name = path.filename();
    if (entry->is_directory() && (name.starts_with('.') || name == "build" || name == "out")) {
      entry.disable_recursion_pending();  // not of the repository
      continue;
    }
    if (path.extension() != ".md") continue;
    ++num_documents;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    for (const Call& call : calls_of(text.str())) {
      ++num_calls;
      const std::string wrong = complaint(call);
      EXPECT_EQ(wrong, "") << path.lexically_relative(root).string() << ":" << call.line << ": "
                           << CLI::detail::join(call.words, " ");
    }
  }
  EXPECT_GT(num_documents, 10);
  EXPECT_GT(num_calls, 20) << "the search is broken";
}

}  // namespace
}  // namespace pagejit::cli
