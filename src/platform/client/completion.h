// Makes the shells' completion scripts from the same tree of commands that parses the command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

// ArgumentKind says how the shell completes an option's value or a positional argument.
enum class ArgumentKind { kNone, kText, kWords, kFile, kFolder, kJob };

struct CommandOption {
  std::vector<std::string> names;  // "--output", "-o"
  std::string description;         // one line
  ArgumentKind kind = ArgumentKind::kNone;
  std::vector<std::string> words;  // kWords: the values that there are
};

// CommandTree is a command with the commands below it; hidden ones are not in the tree.
struct CommandTree {
  std::string name;
  std::string description;
  std::vector<CommandOption> options;
  ArgumentKind positional = ArgumentKind::kNone;
  std::vector<std::string> positional_words;
  std::vector<CommandTree> commands;
};

// Returns a script for "bash", "zsh" or "fish" that completes the root's commands, options, option
// values and, by asking `tutti __complete`, names of jobs. InvalidArgument for another shell.
absl::StatusOr<std::string> CompletionScript(const CommandTree& root, absl::string_view shell);

// Returns what is wrong with a command line whose first word that names no command stands where one
// has to: `unknown command "lst" (did you mean "list"?)`; "" if there is none such.
std::string UnknownCommand(const CommandTree& root, const std::vector<std::string>& arguments);

// Returns the node that the arguments lead to.
const CommandTree& NodeOf(const CommandTree& root, const std::vector<std::string>& arguments);

}  // namespace tutti::client
