#include "platform/client/command_parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/closest.h"

namespace tutti::client {
namespace {

// The names of what a value is, as --help shows them; the shells complete by them.
constexpr char kFormats[] = "table|json|yaml";
constexpr char kJob[] = "JOB";
constexpr char kFile[] = "FILE";
constexpr char kFolder[] = "FOLDER";

// "90", "90s", "1h30m".
absl::Duration ReadDuration(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0) return absl::Seconds(seconds);
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration()) return duration;
  throw CLI::ValidationError("--timeout",
                             "\"" + text + "\" is no duration: write 90, 90s or 1h30m");
}

Format ReadFormat(const std::string& text) {
  if (text == "table") return Format::kTable;
  if (text == "json") return Format::kJson;
  if (text == "yaml") return Format::kYaml;
  throw CLI::ValidationError("--output", "\"" + text + "\" is none of table, json and yaml");
}

void AddFormat(CLI::App* command, Format* format) {
  command
      ->add_option_function<std::string>(
          "-o,--output", [format](const std::string& text) { *format = ReadFormat(text); },
          "How to show it")
      ->type_name(kFormats);
}

CLI::Option* AddJob(CLI::App* command, std::string* job) {
  return command->add_option("job", *job, "The job's name, or the beginning of it")
      ->required()
      ->type_name(kJob);
}

ArgumentKind KindOf(const std::string& type) {
  if (type.empty()) return ArgumentKind::kNone;
  if (type == kJob) return ArgumentKind::kJob;
  if (type == kFile) return ArgumentKind::kFile;
  if (type == kFolder) return ArgumentKind::kFolder;
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
    } else {
      tree.positional = KindOf(option->get_type_name());
      tree.positional_words = WordsOf(option->get_type_name());
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) tree.commands.push_back(TreeOf(*command));
  }
  return tree;
}

}  // namespace

class CommandParser::Impl {
 public:
  explicit Impl(const Wiring& wiring) : wiring_(wiring) {
    app_.name("tutti");
    app_.set_version_flag("--version", "tutti " + wiring.version);
    app_.add_option("--home", home_, "The service's folder (default: $TUTTI_HOME)")
        ->type_name(kFolder);
    app_.require_subcommand(1);
    app_.footer(
        "\nThe service is found by HOME/service.json; TUTTI_ADDRESS and TUTTI_TOKEN name "
        "another.\n\n" +
        std::string(ExitCodeHelp()));
    AddServe();
    AddRun();
    AddJobCommands();
    AddNodeCommands();
    AddOthers();
    AddHidden();
  }

  absl::StatusOr<ParsedCommand> Parse(const std::vector<std::string>& arguments) {
    try {
      // CLI11 takes them last first.
      app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::Success& help) {  // --help, --version
      std::ostringstream text, unused;
      app_.exit(help, text, unused);
      return ParsedCommand{home_, text.str(), nullptr};
    } catch (const CLI::Error& error) {
      return Explain(error, arguments);
    }
    return ParsedCommand{home_, "", run_};
  }

  CommandTree Tree() const { return TreeOf(app_); }

 private:
  using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;

  CLI::App* Add(CLI::App* parent, const std::string& name, const std::string& description,
                Action action) {
    CLI::App* command = parent->add_subcommand(name, description);
    command->fallthrough();  // --home may also stand after the command
    command->parse_complete_callback([this, action] { run_ = action; });
    return command;
  }

  absl::Status Explain(const CLI::Error& error, const std::vector<std::string>& arguments) const {
    const CommandTree tree = Tree();
    std::string what = UnknownCommand(tree, arguments);
    const CommandTree& node = NodeOf(tree, arguments);
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
        return base::DidYouMean(name, known);
      }
    }
    return "";
  }

  void AddServe() {
    CLI::App* command = Add(&app_, "serve", "Run the service and its virtual nodes",
                            [this](Context& context) -> absl::StatusOr<ExitCode> {
                              serve_.home = context.home;
                              const absl::Status status = wiring_.serve(serve_);
                              if (!status.ok()) return status;
                              return ExitCode::kOk;
                            });
    command->add_option("--nodes", serve_.nodes, "Make this machine so many virtual nodes")
        ->capture_default_str()
        ->check(CLI::Range(1, 64))
        ->type_name("N");
    command->add_option("--port", serve_.port, "Port to listen on; 0: any free one")
        ->capture_default_str()
        ->check(CLI::Range(0, 65535))
        ->type_name("PORT");
    command->add_option("--bind", serve_.bind, "Numeric address to listen on")
        ->capture_default_str()
        ->type_name("ADDRESS");
    command->add_option("--log-level", serve_.log_level, "How much to log")
        ->capture_default_str()
        ->type_name("trace|debug|info|warn|error|off");
    command->footer(
        "Ctrl-C or SIGTERM ends the service; jobs that run go on, and the next service "
        "takes them up.");
  }

  void AddSubmission(CLI::App* command, RunOptions* options) {
    command->add_option("file", options->file, "The job file (Azure ML v2 command-job YAML)")
        ->required()
        ->type_name(kFile);
    command
        ->add_option("--set", options->settings,
                     "Change a key of the job file, as in --set inputs.epochs=5; repeatable")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    AddFormat(command, &options->format);
  }

  void AddRun() {
    CLI::App* command = Add(&app_, "run", "Submit a job and follow it to its end",
                            [this](Context& context) { return Run(context, submit_); });
    AddSubmission(command, &submit_);
    command->add_flag("-d,--detach,--no-follow", submit_.detach,
                      "Submit, print the job's name and return");
    command->add_flag("--cancel-on-interrupt", submit_.cancel_on_interrupt,
                      "Ctrl-C cancels the job without asking");
    command->add_option("--rank", submit_.only_rank, "Show the output of this rank only")
        ->check(CLI::NonNegativeNumber)
        ->type_name("R");
    command->footer(
        "Output lines begin with their rank, as in \"[1] text\"; \"[1!]\" is standard error.\n"
        "Ctrl-C asks whether to cancel; without a terminal it leaves the job running.\n"
        "The folder `code:` is sent without .git and what .amlignore or, if there is none, "
        ".gitignore names.\n\n" +
        std::string(ExitCodeHelp()));
  }

  void AddJobCommands() {
    CLI::App* job = app_.add_subcommand("job", "Create, show, follow and end jobs");
    job->require_subcommand(1)->fallthrough();

    CLI::App* create =
        Add(job, "create", "Submit a job and print its name", [this](Context& context) {
          submit_.detach = true;
          return Run(context, submit_);
        });
    AddSubmission(create, &submit_);

    CLI::App* list = Add(job, "list", "Show the newest jobs",
                         [this](Context& context) { return JobList(context, list_); });
    list->add_option("--state", list_.state, "Only those in these states, with commas between")
        ->type_name("STATE");
    list->add_option("--limit", list_.limit, "At most so many")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000))
        ->type_name("N");
    AddFormat(list, &list_.format);

    CLI::App* show = Add(job, "show", "Show one job: facts, failures, events",
                         [this](Context& context) { return JobShow(context, show_); });
    AddJob(show, &show_.job);
    AddFormat(show, &show_.format);

    AddStream(job);
    AddEnds(job);
  }

  void AddStream(CLI::App* job) {
    CLI::App* stream = Add(job, "stream", "Show a job's states and output, live to its end",
                           [this](Context& context) { return JobStream(context, stream_); });
    AddJob(stream, &stream_.job);
    stream->add_option("--rank", stream_.only_rank, "The output of this rank only")
        ->check(CLI::NonNegativeNumber)
        ->type_name("R");
    stream->add_flag("--stderr", stream_.only_stderr, "Standard error only");
    stream->add_flag("--no-prefix", stream_.no_prefix,
                     "The output alone, without ranks and states");
    stream->add_flag("--no-follow", stream_.no_follow, "End with what there is now");
    stream
        ->add_option("--since", stream_.since,
                     "Only what comes after this cursor (`-o json` shows each line's)")
        ->type_name("CURSOR");
    AddFormat(stream, &stream_.format);
  }

  void AddEnds(CLI::App* job) {
    CLI::App* wait = Add(job, "wait", "Wait for a job's end; the exit code is the job's",
                         [this](Context& context) { return JobWait(context, wait_); });
    AddJob(wait, &wait_.job);
    wait->add_option_function<std::string>(
            "--timeout", [this](const std::string& text) { wait_.timeout = ReadDuration(text); },
            "Give up after this time (90, 90s, 1h30m)")
        ->type_name("TIME");
    AddFormat(wait, &wait_.format);

    CLI::App* cancel = Add(job, "cancel", "End a job, whatever its state",
                           [this](Context& context) { return JobCancel(context, cancel_); });
    AddJob(cancel, &cancel_.job);
    cancel->add_flag("--wait", cancel_.wait, "Return when it has ended");
    AddFormat(cancel, &cancel_.format);

    CLI::App* download = Add(job, "download", "Bring a job's outputs and logs here",
                             [this](Context& context) { return JobDownload(context, download_); });
    AddJob(download, &download_.job);
    download->add_option("-d,--directory", download_.directory, "Where to (default: ./JOB)")
        ->type_name(kFolder);
    AddFormat(download, &download_.format);

    CLI::App* remove = Add(job, "delete", "Remove ended jobs with their logs and outputs",
                           [this](Context& context) { return JobDelete(context, delete_); });
    remove->add_option("job", delete_, "The jobs' names, in full")->required()->type_name(kJob);
  }

  void AddNodeCommands() {
    CLI::App* node = app_.add_subcommand("node", "Show the nodes that jobs run on");
    node->require_subcommand(1)->fallthrough();
    CLI::App* list = Add(node, "list", "Show every node and what runs on it",
                         [this](Context& context) { return NodeList(context, format_); });
    AddFormat(list, &format_);
  }

  void AddOthers() {
    CLI::App* doctor = Add(&app_, "doctor", "Check this machine and the service",
                           [this](Context& context) { return RunDoctor(context, format_); });
    AddFormat(doctor, &format_);

    CLI::App* score = Add(&app_, "score", "Classify pictures with a trained model (tutti-score)",
                          [this](Context& context) { return Score(context, score_->remaining()); });
    score->prefix_command()->set_help_flag();
    score->fallthrough(false);
    score_ = score;

    CLI::App* completion = Add(&app_, "completion", "Print a shell's completion script",
                               [this](Context& context) -> absl::StatusOr<ExitCode> {
                                 const auto script = CompletionScript(Tree(), shell_);
                                 if (!script.ok()) return script.status();
                                 context.out << *script;
                                 return ExitCode::kOk;
                               });
    completion->add_option("shell", shell_, "The shell")->required()->type_name("bash|zsh|fish");
    completion->footer(
        "bash: source <(tutti completion bash)\n"
        "zsh:  source <(tutti completion zsh)\n"
        "fish: tutti completion fish | source");
  }

  void AddHidden() {
    CLI::App* launch = Add(&app_, "launch", "Run one node's part of a job",
                           [this](Context&) -> absl::StatusOr<ExitCode> {
                             const absl::Status status = wiring_.launch(plan_);
                             if (!status.ok()) return status;
                             return ExitCode::kOk;
                           });
    launch->group("")->add_option("--plan", plan_)->required();
    CLI::App* complete =
        Add(&app_, "__complete", "", [](Context& context) { return CompleteJobs(context); });
    complete->group("")->add_option("what", complete_)->required();
  }

  const Wiring& wiring_;
  CLI::App app_{"Runs training jobs on many nodes: this machine's virtual ones, or a cluster's."};
  std::string home_, plan_, shell_, complete_;
  ServeOptions serve_;
  RunOptions submit_;
  JobListOptions list_;
  JobOptions show_;
  JobStreamOptions stream_;
  JobWaitOptions wait_;
  JobCancelOptions cancel_;
  JobDownloadOptions download_;
  std::vector<std::string> delete_;
  Format format_ = Format::kTable;
  CLI::App* score_ = nullptr;
  Action run_;
};

CommandParser::CommandParser(const Wiring& wiring) : impl_(std::make_unique<Impl>(wiring)) {}
CommandParser::~CommandParser() = default;

absl::StatusOr<ParsedCommand> CommandParser::Parse(const std::vector<std::string>& arguments) {
  return impl_->Parse(arguments);
}

CommandTree CommandParser::Tree() const { return impl_->Tree(); }

}  // namespace tutti::client
