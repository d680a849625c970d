#include "platform/client/command_parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/closest.h"
#include "platform/client/command_definitions.h"

namespace tutti::client {
namespace {

ArgumentKind KindOf(const std::string& type) {
  if (type.empty()) return ArgumentKind::kNone;
  if (type == kJobValue) return ArgumentKind::kJob;
  if (type == kFileValue) return ArgumentKind::kFile;
  if (type == kFolderValue) return ArgumentKind::kFolder;
  return absl::StrContains(type, "|") ? ArgumentKind::kWords : ArgumentKind::kText;
}

std::vector<std::string> WordsOf(const std::string& type) {
  if (KindOf(type) != ArgumentKind::kWords) return {};
  return absl::StrSplit(type, '|');
}

CommandOption OptionOf(const CLI::Option& option) {
  CommandOption result;
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  result.description = option.get_description();
  const bool takes_value = option.get_items_expected_max() > 0;
  result.kind = takes_value ? KindOf(option.get_type_name()) : ArgumentKind::kNone;
  result.words = WordsOf(option.get_type_name());
  return result;
}

CommandTree TreeOf(const CLI::App& app) {
  CommandTree tree{app.get_name(), app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      tree.options.push_back(OptionOf(*option));
    } else if (tree.positional == ArgumentKind::kNone) {  // the first
      tree.positional = KindOf(option->get_type_name());
      tree.positional_words = WordsOf(option->get_type_name());
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) tree.commands.push_back(TreeOf(*command));
  }
  return tree;
}

// Returns what stands in place of a command or an option of az batchai that has no counterpart; ""
// of all others.
std::string InPlaceOfAzs(const std::vector<std::string>& arguments) {
  static constexpr std::pair<absl::string_view, absl::string_view> kGone[] = {
      {"workspace", "there are no workspaces here: leave the command out (-w has no effect)"},
      {"experiment",
       "an experiment is there with its first job: tutti batchai job create -e NAME, and tutti "
       "batchai job list -e NAME shows it"},
      {"auto-scale",
       "no nodes are bought or given back here: tutti batchai cluster resize -t COUNT sets "
       "how many a job may have"},
      {"list-usages", "there are no quotas here: tutti top shows the nodes and what runs on them"},
      {"usage", "there are no quotas here: tutti top shows the nodes and what runs on them"},
      {"exec",
       "no command is run beside a job's own: write it in the job's command; tutti job stacks NAME "
       "shows what each of its processes does"},
      {"--afs-", "shares are named in the file, by azureFileShares of mountVolumes"},
      {"--bfs-", "containers are named in the file, by azureBlobFileSystems of mountVolumes"},
      {"--nfs", "file servers are named in the file, by fileServers of mountVolumes"}};
  if (arguments.empty() || arguments[0] != "batchai") return "";
  for (const auto& [theirs, ours] : kGone) {
    const bool is_option = absl::StartsWith(theirs, "--");
    for (size_t i = 1; i < arguments.size() && (is_option || i < 4); ++i) {
      const bool is_it =
          is_option ? absl::StartsWith(arguments[i], theirs) : arguments[i] == theirs;
      if (is_it) return absl::StrCat(arguments[i].substr(0, arguments[i].find('=')), ": ", ours);
    }
  }
  return "";
}

}  // namespace

class CommandParser::Impl {
 public:
  explicit Impl(const Wiring& wiring) : definitions_(wiring, [this] { return Tree(); }) {
    definitions_.AddTo(&app_);
  }

  absl::StatusOr<ParsedCommand> Parse(std::vector<std::string> arguments) {
    if (NamesAGroup(arguments)) arguments.emplace_back("--help");
    try {
      // CLI11 takes them last first.
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::Success& help) {  // --help, --version
      std::ostringstream text, unused;
      app_.exit(help, text, unused);
      return ParsedCommand{definitions_.home(), text.str(), nullptr};
    } catch (const CLI::Error& error) {
      return Explain(error, arguments);
    }
    return ParsedCommand{definitions_.home(), "", definitions_.chosen()};
  }

  CommandTree Tree() const { return TreeOf(app_); }

 private:
  // `tutti`, `tutti job`: who stops there wants to know what there is.
  bool NamesAGroup(const std::vector<std::string>& arguments) const {
    const CommandTree tree = Tree();
    const CommandTree* at = &tree;
    for (const std::string& word : arguments) {
      const auto next = std::find_if(at->commands.begin(), at->commands.end(),
                                     [&](const CommandTree& child) { return child.name == word; });
      if (next == at->commands.end()) return false;
      at = &*next;
    }
    return !at->commands.empty();
  }

  absl::Status Explain(const CLI::Error& error, const std::vector<std::string>& arguments) const {
    const CommandTree tree = Tree();
    std::string what = InPlaceOfAzs(arguments);
    if (what.empty()) what = UnknownCommand(tree, arguments);
    const CommandTree& node = NodeOf(tree, arguments);
    if (what.empty() && IsWithoutItsFile(error)) {
      what = node.name == "run"
                 ? "say what is run: a job file or a script, as in tutti run train.py"
                 : "say which file, as its name alone or by --file";
    }
    if (what.empty()) what = absl::StrCat(error.what(), OptionHint(tree, node, arguments));
    std::string help = "tutti";
    const CommandTree* at = &tree;
    for (const std::string& word : arguments) {
      for (const CommandTree& child : at->commands) {
        if (child.name != word) continue;
        absl::StrAppend(&help, " ", word);
        at = &child;
        break;
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StripTrailingAsciiWhitespace(what), "; see `", help, " --help`"));
  }

  // FILE may be given without an option, so that "--file is required" says only half of it.
  static bool IsWithoutItsFile(const CLI::Error& error) {
    return error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
           absl::StartsWith(error.what(), "--file is required");
  }

  static std::string OptionHint(const CommandTree& root, const CommandTree& node,
                                const std::vector<std::string>& arguments) {
    std::vector<absl::string_view> known;
    for (const CommandTree* tree : {&root, &node}) {
      for (const CommandOption& option : tree->options) {
        known.insert(known.end(), option.names.begin(), option.names.end());
      }
    }
    for (const std::string& word : arguments) {
      const std::string name = word.substr(0, word.find('='));
      if (!absl::StartsWith(name, "--")) continue;
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string meant = base::DidYouMean(name, known);
        if (!meant.empty() || node.name != "run") return meant;
        return ", and is none of tutti's: a program's own arguments are written after --";
      }
    }
    return "";
  }

  CLI::App app_{"Runs training jobs on many nodes: this machine's virtual ones, or a cluster's."};
  CommandDefinitions definitions_;
};

CommandParser::CommandParser(const Wiring& wiring) : impl_(std::make_unique<Impl>(wiring)) {}
CommandParser::~CommandParser() = default;

absl::StatusOr<ParsedCommand> CommandParser::Parse(const std::vector<std::string>& arguments) {
  return impl_->Parse(arguments);
}

CommandTree CommandParser::Tree() const { return impl_->Tree(); }

}  // namespace tutti::client
