// Values of options that are words of a list: checked as the command line is read, with the word
// that was probably meant. Thread-safety: free functions without state.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pagejit::cli {

// Exactly one of `words`.
CLI::Validator one_of(std::vector<std::string> words);

// What parse_data_type() takes.
CLI::Validator data_type_word();

// What parse_target() takes, of each part between commas.
CLI::Validator target_words();

// What --driver takes: "cuda", "emulator" or a library. A bare word that is nearly one of the first
// two is no library's name.
CLI::Validator driver_word();

// "; did you mean merge_states?" for the text of a spec that begins with no family's name but
// nearly does; else "".
std::string did_you_mean_family(const std::string& spec_text);

// Whether `word` is what the text of a spec begins with; and all of these: "decode, few, ... or
// index_logits".
bool begins_spec(const std::string& word);
std::string spec_beginnings();

// The sentence for an option's value that is not of its type; the others of CLI11 are good enough.
std::string malformed_value(const CLI::App& app, const CLI::ConversionError& error);

// "unknown subcommand X", with the one that was meant.
std::string unknown_subcommand(const CLI::App& command, const std::string& word);

// What is wrong with the first word of the command line that is no option, subcommand or argument
// of the command that it was given to; "" where there is none. `app` has been parsed, with or
// without an error.
std::string unknown_word(const CLI::App& app);

// The subcommand that was named last: of `pagejit cache ls` that of `ls`; `app` where there is
// none.
const CLI::App& innermost_command(const CLI::App& app);

// "pagejit cache ls".
std::string full_name(const CLI::App& command);

}  // namespace pagejit::cli
