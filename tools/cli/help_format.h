// The formatter of --help: CLI11's, with all text wrapped to a terminal's width, and examples
// broken so that they can still be copied. Thread-safety: one thread.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/cli/terminal.h"

namespace pagejit::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const Terminal& terminal);

  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* command) const override;
  std::string make_usage(const CLI::App* command, std::string name) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  std::string fit(const std::string& description) const;

  const Terminal terminal_;
  const int width_;  // of descriptions; 0: not wrapped
};

}  // namespace pagejit::cli
