// The formatter of --help: CLI11's, with descriptions that are wrapped to a terminal's width.
// Thread-safety: one thread.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/cli/terminal.h"

namespace pagejit::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const Terminal& terminal);

  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string fit(const std::string& description) const;

  const int width_;  // of descriptions; 0: not wrapped
};

}  // namespace pagejit::cli
