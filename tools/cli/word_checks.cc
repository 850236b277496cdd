#include "tools/cli/word_checks.h"

#include <algorithm>
#include <utility>

#include "generator/arch.h"
#include "generator/spec_parser.h"
#include "pagejit/spec.h"
#include "pagejit/target.h"
#include "tools/models/config_reader.h"
#include "tools/models/near_words.h"

namespace pagejit::cli {
namespace {

const std::vector<std::string>& data_types() {
  static const std::vector<std::string> kTypes = {
      "bf16", "f16",  "f32",   "fp8",      "fp8_e4m3", "fp8_e5m2", "int8",
      "int4", "half", "float", "bfloat16", "float16",  "float32"};
  return kTypes;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names = {"host"};
  // The variants first: of equally near names they are what a program is deployed for.
  for (const Arch& arch : known_archs()) {
    const std::string name = "sm_" + std::to_string(arch.sm);
    if (arch.has_exact_variant) names.push_back(name + "a");
    if (arch.has_family_variant) names.push_back(name + "f");
    names.push_back(name);
  }
  for (const Arch& arch : known_archs()) names.push_back("host_" + std::to_string(arch.sm));
  return names;
}

// "rows, vllm or ds_mla".
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : " or ";
    text += words[i];
  }
  return text;
}

void add_option_names(const CLI::App& command, std::vector<std::string>* names) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back("--" + name);
  }
}

// A hidden one has no group, and is not suggested.
std::vector<std::string> subcommands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

// Of texts, whose attention begins with the query lengths.
std::vector<std::string> first_words_of_specs() {
  std::vector<std::string> words = {"decode", "few", "many", "shared"};
  for (const std::string_view family : family_names()) {
    if (family != "attention") words.emplace_back(family);
  }
  return words;
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end()) return "";
    return models::printable(word) + ": must be " + listed(words) +
           models::did_you_mean(word, words);
  };
  return {check, ""};
}

CLI::Validator data_type_word() {
  const auto check = [](std::string& word) -> std::string {
    const Result<DataType> type = parse_data_type(word);
    if (type) return "";
    return type.status().message() + models::did_you_mean(word, data_types());
  };
  return {check, ""};
}

CLI::Validator target_words() {
  const auto check = [](std::string& list) -> std::string {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string word = list.substr(begin, end - begin);
      if (const Result<Target> target = parse_target(word); !target) {
        return target.status().message() + models::did_you_mean(word, target_names());
      }
      begin = end + 1;
    }
    return "";
  };
  return {check, ""};
}

CLI::Validator driver_word() {
  const auto check = [](std::string& word) -> std::string {
    const std::vector<std::string> words = {"cuda", "emulator"};
    if (std::find(words.begin(), words.end(), word) != words.end()) return "";
    const bool is_library =
        word.find('/') != std::string::npos || word.find(".so") != std::string::npos;
    const std::string meant = is_library ? "" : models::did_you_mean(word, words);
    if (meant.empty()) return "";
    return models::printable(word) + ": must be cuda, emulator or a driver library" + meant;
  };
  return {check, ""};
}

std::string did_you_mean_family(const std::string& spec_text) {
  const std::string word = spec_text.substr(0, spec_text.find(' '));
  return begins_spec(word) ? "" : models::did_you_mean(word, first_words_of_specs());
}

bool begins_spec(const std::string& word) {
  const std::vector<std::string> known = first_words_of_specs();
  return std::find(known.begin(), known.end(), word) != known.end();
}

std::string spec_beginnings() { return listed(first_words_of_specs()); }

std::string malformed_value(const CLI::App& app, const CLI::ConversionError& error) {
  std::string text = error.what();
  const std::string beginning = "Could not convert: ";
  const size_t equals = text.find(" = ");
  if (!text.starts_with(beginning) || equals == std::string::npos) return text;
  const std::string name = text.substr(beginning.size(), equals - beginning.size());
  const std::string value = models::printable(text.substr(equals + 3));
  const CLI::Option* option = innermost_command(app).get_option_no_throw(name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  const bool is_whole = value.find_first_not_of("0123456789") == std::string::npos;
  return name + " " + value +
         (is_whole      ? ": is too large"
          : type == "X" ? ": must be a number"
                        : ": must be a whole number") +
         (type.find(',') == std::string::npos ? "" : ", or several with commas between them");
}

std::string unknown_subcommand(const CLI::App& command, const std::string& word) {
  return "unknown subcommand " + models::printable(word) +
         models::did_you_mean(word, subcommands_of(command));
}

const CLI::App& innermost_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string unknown_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  if (words.empty()) return "";
  // Words are given up innermost command first, so that the first of them is the mistake and the
  // others may be what belongs to it.
  const std::string& word = words.front();
  const CLI::App& command = innermost_command(app);
  std::vector<std::string> known;
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
      add_option_names(*at, &known);
    }
    return "unknown option " + models::printable(name) + models::did_you_mean(name, known);
  }
  if (subcommands_of(command).empty()) return "unexpected argument " + models::printable(word);
  return unknown_subcommand(command, word);
}

}  // namespace pagejit::cli
