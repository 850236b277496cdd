#include "tools/cli/completions.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string_view>

namespace pagejit::cli {
namespace {

using Value = CommandFlag::Value;

// `text` in single quotes, each of `special` and the quote itself after a backslash or, for shells
// that know none inside of quotes, outside of them.
std::string quoted(std::string_view text, std::string_view special, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += quote;
    } else {
      if (special.find(c) != std::string_view::npos) result += '\\';
      result += c == '\n' ? ' ' : c;
    }
  }
  return result + "'";
}

constexpr std::string_view kOutsideOfQuotes = "'\\''";

std::string joined(std::string_view before, std::string_view name) {
  return before.empty() ? std::string(name) : std::string(before) + " " + std::string(name);
}

// Calls visit(path, command) for the command itself, whose path is "", and for all below it.
void for_each_command(const CommandTree& command, const std::string& path,
                      const std::function<void(const std::string&, const CommandTree&)>& visit) {
  visit(path, command);
  for (const CommandTree& below : command.commands) {
    for_each_command(below, joined(path, below.name), visit);
  }
}

// What the words so far may be followed by to get to a subcommand: "' bundle' 'bundle create'", for
// the shells' `case`.
std::string steps(const CommandTree& command, std::string_view separator) {
  std::string patterns;
  for_each_command(command, "", [&](const std::string& path, const CommandTree& at) {
    for (const CommandTree& below : at.commands) {
      if (!patterns.empty()) patterns += separator;
      patterns += quoted(path + " " + below.name, "", kOutsideOfQuotes);
    }
  });
  return patterns;
}

bool takes_files(const CommandTree& command) {
  for (const CommandFlag& flag : command.flags) {
    if (flag.is_positional && flag.value == Value::kFile) return true;
  }
  return false;
}

std::string names_of(const CommandFlag& flag) {
  std::string names;
  for (const std::string& name : flag.names) names = joined(names, name);
  return names;
}

// The names of the flags with one of these values.
std::string names_of(const CommandTree& command, std::initializer_list<Value> values) {
  std::string names;
  for (const CommandFlag& flag : command.flags) {
    const bool wanted = std::find(values.begin(), values.end(), flag.value) != values.end();
    if (wanted && !flag.is_positional) names = joined(names, names_of(flag));
  }
  return names;
}

// The names of the flags that two values follow; none takes more.
std::string names_of_pairs(const CommandTree& command) {
  std::string names;
  for (const CommandFlag& flag : command.flags) {
    if (flag.num_values > 1 && !flag.is_positional) names = joined(names, names_of(flag));
  }
  return names;
}

std::string zsh_description(std::string_view text) {
  return quoted(text, "[]:\\", kOutsideOfQuotes);
}

const char* zsh_action(Value value) {
  switch (value) {
    case Value::kFile:
      return "_files";
    case Value::kFolder:
      return "_files -/";
    case Value::kNone:
    case Value::kText:
      break;
  }
  return " ";
}

std::string zsh_function(const std::string& path) {
  std::string name = "_pagejit";
  for (const char c : path.empty() ? "" : " " + path) name += c == ' ' || c == '-' ? '_' : c;
  return name;
}

// The arguments of _arguments for one flag, each on a line.
std::string zsh_specs(const CommandFlag& flag) {
  if (flag.is_positional) {
    return "    '" + std::string(flag.repeats ? "*" : "") + ":" + flag.names.front() + ":" +
           zsh_action(flag.value) + "' \\\n";
  }
  // Of the names of a flag that is given once, one excludes the others.
  const std::string excluded = flag.repeats ? "*" : "(" + names_of(flag) + ")";
  std::string specs;
  for (const std::string& name : flag.names) {
    specs += "    '" + excluded + "'" + name + "'['" + zsh_description(flag.help) + "']'";
    for (int i = 0; flag.value != Value::kNone && i < std::max(flag.num_values, 1); ++i) {
      specs += "':" + flag.placeholder + ":" + zsh_action(flag.value) + "'";
    }
    specs += " \\\n";
  }
  return specs;
}

}  // namespace

std::string bash_completion(const CommandTree& command) {
  std::string text = "# bash completion of " + command.name + "; made by `" + command.name +
                     " generate bash`.\n" + R"(_pagejit() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local at='' commands='' options='' texts='' files='' folders='' takes_files='' i
  local before='' pairs=''
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${COMP_WORDS[i]}" in
      )" + steps(command, " | ") +
                     R"()
        at="${at:+$at }${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
)";
  for_each_command(command, "", [&](const std::string& path, const CommandTree& at) {
    std::string commands;
    for (const CommandTree& below : at.commands) commands = joined(commands, below.name);
    text += "    '" + path + "')\n";
    text += "      commands='" + commands + "'\n";
    text += "      options='" +
            names_of(at, {Value::kNone, Value::kText, Value::kFile, Value::kFolder}) + "'\n";
    text += "      texts='" + names_of(at, {Value::kText}) + "'\n";
    text += "      files='" + names_of(at, {Value::kFile}) + "'\n";
    text += "      folders='" + names_of(at, {Value::kFolder}) + "'\n";
    text += "      pairs='" + names_of_pairs(at) + "'\n";
    text += std::string("      takes_files=") + (takes_files(at) ? "yes" : "''") + " ;;\n";
  });
  text += R"(  esac
  # The second value of a flag that takes two.
  ((COMP_CWORD < 3)) || before=${COMP_WORDS[COMP_CWORD - 2]}
  [[ -z $before || " $pairs " != *" $before "* ]] || prev=$before
  local words=''
  if [[ " $texts " == *" $prev "* ]]; then
    return
  elif [[ " $folders " == *" $prev "* ]]; then
    words=$(compgen -d -- "$cur")
    compopt -o filenames 2>/dev/null
  elif [[ " $files " == *" $prev "* ]]; then
    words=$(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  elif [[ $cur == -* ]]; then
    words=$(compgen -W "$options" -- "$cur")
  elif [[ -n $takes_files ]]; then
    words=$(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  else
    words=$(compgen -W "$commands" -- "$cur")
  fi
  [[ -z $words ]] || mapfile -t COMPREPLY <<<"$words"
}
complete -F _pagejit )" +
          command.name + "\n";
  return text;
}

std::string zsh_completion(const CommandTree& command) {
  std::string text =
      "#compdef " + command.name + "\n# Made by `" + command.name + " generate zsh`.\n";
  for_each_command(command, "", [&](const std::string& path, const CommandTree& at) {
    text += "\n" + zsh_function(path) + "() {\n";
    if (!at.commands.empty()) {
      text += "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n";
      text += "  local -a commands=(\n";
      for (const CommandTree& below : at.commands) {
        text += "    " + quoted(below.name, "", "") + "':'" + zsh_description(below.help) + "\n";
      }
      text += "  )\n";
    }
    text += at.commands.empty() ? "  _arguments -s \\\n" : "  _arguments -s -C \\\n";
    for (const CommandFlag& flag : at.flags) text += zsh_specs(flag);
    if (at.commands.empty()) {
      text += "    && return 0\n}\n";
      return;
    }
    text += "    '1: :->command' '*:: :->arguments' && return 0\n";
    text += "  case $state in\n    command) _describe command commands ;;\n";
    text += "    arguments)\n      case $line[1] in\n";
    for (const CommandTree& below : at.commands) {
      text += "        " + below.name + ") " + zsh_function(joined(path, below.name)) + " ;;\n";
    }
    text += "      esac ;;\n  esac\n}\n";
  });
  // Loaded by name, the file is the function's body; sourced, it registers it.
  text +=
      "\nif [[ $funcstack[1] == _pagejit ]]; then\n  _pagejit \"$@\"\nelse\n  compdef _pagejit " +
      command.name + "\nfi\n";
  return text;
}

std::string fish_completion(const CommandTree& command) {
  const auto fish = [](std::string_view text) { return quoted(text, "\\", "\\'"); };
  const std::string complete = "complete -c " + command.name;
  std::string text =
      "# fish completion of " + command.name + "; made by `" + command.name + " generate fish`.\n" +
      R"(function __pagejit_at --description 'Whether the words so far name this command'
  set -l at ''
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case )" +
      steps(command, " ") + R"(
        set at (string trim -- "$at $word")
    end
  end
  test "$at" = "$argv[1]"
end
)" + complete +
      " -f\n";
  for_each_command(command, "", [&](const std::string& path, const CommandTree& at) {
    const std::string here = complete + " -n " + fish("__pagejit_at \"" + path + "\"");
    if (takes_files(at)) text += here + " -F\n";
    if (const std::string pairs = names_of_pairs(at); !pairs.empty()) {
      text +=
          complete + " -n " +
          fish("__pagejit_at \"" + path + "\"; and contains -- (commandline -opc)[-2] " + pairs) +
          " -F\n";
    }
    for (const CommandTree& below : at.commands) {
      text += here + " -a " + below.name + " -d " + fish(below.help) + "\n";
    }
    for (const CommandFlag& flag : at.flags) {
      if (flag.is_positional) continue;
      text += here;
      for (const std::string& name : flag.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.value == Value::kFile) text += " -r -F";
      if (flag.value == Value::kFolder) text += " -x -a '(__fish_complete_directories)'";
      if (flag.value == Value::kText) text += " -x";
      text += " -d " + fish(flag.help) + "\n";
    }
  });
  return text;
}

}  // namespace pagejit::cli
