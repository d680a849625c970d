#include "platform/client/completion.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/text/closest.h"
#include "platform/client/completion_templates.h"

namespace tutti::client {
namespace {

// Visit is called for each entry of the tree as the scripts see it, with its path of commands,
// separated by slashes.
using Visit = std::function<void(const std::string& path, const CommandTree& node)>;

void Walk(const CommandTree& node, const std::string& path, const Visit& visit) {
  visit(path, node);
  for (const CommandTree& child : node.commands) {
    Walk(child, path.empty() ? child.name : absl::StrCat(path, "/", child.name), visit);
  }
}

std::string ActionOf(ArgumentKind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case ArgumentKind::kWords:
      return absl::StrCat("words ", absl::StrJoin(words, " "));
    case ArgumentKind::kFile:
      return "files";
    case ArgumentKind::kFolder:
      return "folders";
    case ArgumentKind::kJob:
      return "jobs";
    default:
      return "nothing";
  }
}

// Returns what may follow a command: commands and options, or the positional argument.
std::string ChoicesOf(const CommandTree& node) {
  std::vector<std::string> words;
  for (const CommandTree& child : node.commands) words.push_back(child.name);
  for (const CommandOption& option : node.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return absl::StrJoin(words, " ");
}

// Cases of a shell's `case` over "PATH" and "PATH OPTION", the same in bash and zsh.
struct Cases {
  std::string commands;  // path: the commands below it
  std::string choices;   // path: commands and options
  std::string values;    // path and option: what its value is
  std::string places;    // path: what the positional argument is
};

Cases CasesOf(const CommandTree& root) {
  Cases cases;
  Walk(root, "", [&](const std::string& path, const CommandTree& node) {
    for (const CommandTree& child : node.commands) {
      absl::StrAppend(&cases.commands, "      '", path, " ", child.name, "') at='",
                      path.empty() ? child.name : absl::StrCat(path, "/", child.name), "' ;;\n");
    }
    absl::StrAppend(&cases.choices, "    '", path, "') choices='", ChoicesOf(node), "' ;;\n");
    absl::StrAppend(&cases.places, "    '", path, "') action='",
                    ActionOf(node.positional, node.positional_words), "' ;;\n");
    for (const CommandOption& option : node.options) {
      if (option.kind == ArgumentKind::kNone) continue;
      for (const std::string& name : option.names) {
        absl::StrAppend(&cases.values, "    '", path, " ", name, "') action='",
                        ActionOf(option.kind, option.words), "' ;;\n");
      }
    }
  });
  return cases;
}

std::string Filled(absl::string_view form, const CommandTree& root) {
  const Cases cases = CasesOf(root);
  return absl::StrReplaceAll(form, {{"@COMMANDS@", cases.commands},
                                    {"@CHOICES@", cases.choices},
                                    {"@VALUES@", cases.values},
                                    {"@PLACES@", cases.places}});
}

std::string QuotedForFish(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishArgument(ArgumentKind kind, const std::vector<std::string>& words) {
  switch (kind) {
    case ArgumentKind::kWords:
      return absl::StrCat(" -x -a ", QuotedForFish(absl::StrJoin(words, " ")));
    case ArgumentKind::kFile:
      return " -r -F";
    case ArgumentKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ArgumentKind::kJob:
      return " -x -a '(tutti __complete jobs 2>/dev/null)'";
    case ArgumentKind::kText:
      return " -x";
    case ArgumentKind::kNone:
      return "";
  }
  return "";
}

// True, in fish, when the commands of the path were typed and none below it.
std::string FishCondition(const std::string& path) {
  return absl::StrCat(" -n '__tutti_at ", absl::StrReplaceAll(path, {{"/", " "}}), "'");
}

std::string FishScript(const CommandTree& root) {
  std::string names;  // every command's name, to find the path in a line
  std::string rules;
  Walk(root, "", [&](const std::string& path, const CommandTree& node) {
    const std::string line = absl::StrCat("complete -c tutti", FishCondition(path));
    for (const CommandTree& child : node.commands) {
      absl::StrAppend(&names, " ", child.name);
      absl::StrAppend(&rules, line, " -a ", child.name, " -d ", QuotedForFish(child.description),
                      "\n");
    }
    for (const CommandOption& option : node.options) {
      absl::StrAppend(&rules, line);
      for (const std::string& name : option.names) {
        const bool is_long = absl::StartsWith(name, "--");
        absl::StrAppend(&rules, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
      }
      absl::StrAppend(&rules, FishArgument(option.kind, option.words), " -d ",
                      QuotedForFish(option.description), "\n");
    }
    if (node.positional != ArgumentKind::kNone && node.positional != ArgumentKind::kText) {
      absl::StrAppend(&rules, line, FishArgument(node.positional, node.positional_words), "\n");
    }
  });
  return absl::StrCat(
      "# Completion for fish: tutti completion fish | source\n"
      "function __tutti_at\n"
      "  set -l path\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    contains -- $word",
      names,
      "; and set -a path $word\n"
      "  end\n"
      "  test \"$path\" = \"$argv\"\n"
      "end\n"
      "complete -c tutti -f\n",
      rules);
}

bool TakesValue(const CommandTree& node, const std::string& word) {
  return std::any_of(node.options.begin(), node.options.end(), [&](const CommandOption& option) {
    return option.kind != ArgumentKind::kNone &&
           std::find(option.names.begin(), option.names.end(), word) != option.names.end();
  });
}

// These are the names that other tools have for commands of tutti.
constexpr std::pair<absl::string_view, absl::string_view> kOfOtherTools[] = {
    {"submit", "job create"},  {"sbatch", "job create"}, {"srun", "run"},
    {"log", "job stream"},     {"logs", "job stream"},   {"attach", "job stream"},
    {"ps", "job list"},        {"ls", "job list"},       {"squeue", "job list"},
    {"status", "job show"},    {"stop", "job cancel"},   {"kill", "job cancel"},
    {"scancel", "job cancel"}, {"start", "serve"},       {"nodes", "node list"},
    {"sinfo", "node list"},    {"drain", "node cordon"},
};

// Returns the command that the word most likely means, though it is not near one by its letters:
// another tool's word, or one that stands below a group, first below `job`. "" if there is none.
std::string CommandElsewhere(const CommandTree& root, absl::string_view word) {
  for (const auto& [theirs, ours] : kOfOtherTools) {
    if (word == theirs) return std::string(ours);
  }
  std::string found;
  for (const CommandTree& group : root.commands) {
    for (const CommandTree& child : group.commands) {
      const bool is_better = found.empty() || group.name == "job";
      if (child.name == word && is_better) found = absl::StrCat(group.name, " ", child.name);
    }
  }
  return found;
}

std::string Suggestion(const CommandTree& root, const CommandTree& at, const std::string& word) {
  std::vector<absl::string_view> names;
  for (const CommandTree& child : at.commands) names.push_back(child.name);
  std::string near = base::DidYouMean(word, names);
  const std::string elsewhere = CommandElsewhere(root, word);
  if (elsewhere.empty()) return near;
  return absl::StrCat(" (did you mean `tutti ", elsewhere, "`?)");
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(const CommandTree& root, absl::string_view shell) {
  if (shell == "bash") return Filled(kBashForm, root);
  if (shell == "zsh") return Filled(kZshForm, root);
  if (shell == "fish") return FishScript(root);
  return absl::InvalidArgumentError(
      absl::StrCat("no completion for \"", shell, "\": bash, zsh and fish are known"));
}

std::string UnknownCommand(const CommandTree& root, const std::vector<std::string>& arguments) {
  const CommandTree* node = &root;
  for (size_t i = 0; i < arguments.size() && !node->commands.empty(); ++i) {
    const std::string& word = arguments[i];
    if (absl::StartsWith(word, "-")) {
      if (TakesValue(*node, word)) ++i;
      continue;
    }
    const auto next = std::find_if(node->commands.begin(), node->commands.end(),
                                   [&](const CommandTree& child) { return child.name == word; });
    if (next == node->commands.end()) {
      return absl::StrCat("unknown command \"", word, "\"", Suggestion(root, *node, word));
    }
    node = &*next;
  }
  return "";
}

const CommandTree& NodeOf(const CommandTree& root, const std::vector<std::string>& arguments) {
  const CommandTree* node = &root;
  for (const std::string& word : arguments) {
    const auto next = std::find_if(node->commands.begin(), node->commands.end(),
                                   [&](const CommandTree& child) { return child.name == word; });
    if (next != node->commands.end()) node = &*next;
  }
  return *node;
}

}  // namespace tutti::client
