#include "platform/client/command_definitions.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/environment/contract_variables.h"
#include "spec/types/launcher_exit.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kLeastInterval = absl::Milliseconds(100);
constexpr char kFormats[] = "table|json|yaml";

Format ReadFormat(const std::string& text) {
  if (text == "table") return Format::kTable;
  if (text == "json") return Format::kJson;
  if (text == "yaml") return Format::kYaml;
  throw CLI::ValidationError("--output", "\"" + text + "\" is none of table, json and yaml");
}

CLI::Option* AddJob(CLI::App* command, std::string* job) {
  return command->add_option("job", *job, "The job's name, the beginning of it, or last")
      ->required()
      ->type_name(kJobValue);
}

using Pair = std::pair<std::string, std::string>;

// "NAME=VALUE"; of a text without "=" the value is what `otherwise` makes of it.
Pair ReadPair(const std::string& option, const std::string& text,
              const std::function<std::string(const std::string&)>& otherwise = nullptr) {
  const size_t equals = text.find('=');
  const bool has_value = equals != std::string::npos;
  if (equals == 0 || text.empty() || (!has_value && otherwise == nullptr)) {
    throw CLI::ValidationError(option, "\"" + text + "\" is not NAME=VALUE");
  }
  if (!has_value) return {text, otherwise(text)};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// "hugging-face" is HUGGING_FACE.
std::string VariableOf(const std::string& secret) {
  return absl::AsciiStrToUpper(spec::AsVariableName(secret));
}

// Options for the keys that users change most; --set changes any.
void AddKeyOptions(CLI::App* command, std::vector<KeyOption>* keys) {
  const auto add = [=](const char* option, const char* type, const char* help, const char* key,
                       const char* sbatch = "") {
    command
        ->add_option_function<std::string>(
            option,
            [=](const std::string& value) {
              keys->push_back({option, key, value, sbatch});
            },
            help)
        ->type_name(type);
  };
  add("--name", "NAME", "The job's name, which no other job may have", "name");
  add("--experiment", "NAME", "The experiment that it belongs to", "experiment_name");
  add("--compute", "COMPUTE", "Where it runs: local, or a cluster's name", "compute", "compute");
  add("--cpus", "N", "So many processors of each node, not the whole node",
      "resources.properties.tutti.cpus");
  add("--memory", "SIZE", "So much memory of each node, as in 8GB",
      "resources.properties.tutti.memory", "mem");
  const auto add_each = [=](const char* option, const char* type, const char* help,
                            const std::function<void(const std::string&)>& read) {
    command
        ->add_option_function<std::vector<std::string>>(
            option, [=](const auto& texts) { std::for_each(texts.begin(), texts.end(), read); },
            help)
        ->type_name(type)
        ->expected(1)
        ->allow_extra_args(false)  // else it takes the -- behind it, and the script's words
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add_each("--env", "NAME=VALUE", "A variable of its processes; repeatable",
           [=](const std::string& text) {
             const auto [name, value] = ReadPair("--env", text);
             keys->push_back({"--env " + name, "environment_variables." + name, value, ""});
           });
  add_each("--secret", "NAME[=VARIABLE]",
           "A secret of the service's in a variable of its processes; repeatable",
           [=](const std::string& text) {
             const auto [name, variable] = ReadPair("--secret", text, VariableOf);
             keys->push_back(
                 {"--secret " + name, "resources.properties.tutti.secrets." + variable, name, ""});
           });
}

}  // namespace

absl::Duration ReadDuration(const std::string& option, const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0) return absl::Seconds(seconds);
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration()) return duration;
  throw CLI::ValidationError(option, "\"" + text + "\" is no duration: write 90, 90s or 1h30m");
}

absl::Duration ReadAge(const std::string& option, const std::string& text) {
  int number = 0;
  for (const auto& [unit, days] : {std::pair("d", 1), {"w", 7}}) {
    absl::string_view count = text;
    if (absl::ConsumeSuffix(&count, unit) && absl::SimpleAtoi(count, &number) && number >= 0) {
      return absl::Hours(24) * days * number;
    }
  }
  return ReadDuration(option, text);
}

void AddFormat(CLI::App* command, Format* format) {
  command
      ->add_option_function<std::string>(
          "-o,--output", [format](const std::string& text) { *format = ReadFormat(text); },
          "How to show it")
      ->type_name(kFormats);
}

CommandDefinitions::CommandDefinitions(const Wiring& wiring, std::function<CommandTree()> tree)
    : wiring_(wiring), tree_(std::move(tree)) {}

void CommandDefinitions::AddTo(CLI::App* app) {
  app->name("tutti");
  app->set_version_flag("--version", "tutti " + wiring_.version);
  app->add_option("--home", home_, "The service's folder (default: $TUTTI_HOME)")
      ->type_name(kFolderValue);
  app->require_subcommand(1);
  app->footer(
      "The service is found by HOME/service.json; TUTTI_ADDRESS, TUTTI_TOKEN and, for https, "
      "TUTTI_CERTIFICATE (a PEM file) name another.\n\n" +
      std::string(ExitCodeHelp()));
  AddServe(app);
  AddRun(app);
  AddInit(app);
  CLI::App* job = app->add_subcommand("job",
                                      "Jobs: create, rerun, validate, upgrade, list, show, diff, "
                                      "stream, wait, cancel, download, delete");
  job->require_subcommand(1)->fallthrough();
  AddCreate(job);
  AddRerun(job);
  AddValidate(job);
  AddUpgrade(job);
  AddViews(job);
  AddStream(job);
  AddEnds(job);
  AddFiles(job);
  AddTop(app);
  AddPortal(app);
  AddTensorBoard(app);
  AddData(app);
  AddDatastore(app);
  AddFileServer(app);
  AddCache(app);
  AddStorage(app);
  AddComponent(app);
  AddModel(app);
  AddCompute(app);
  AddEnvironment(app);
  AddNode(app);
  AddCluster(app);
  AddSecret(app);
  AddBatchAi(app);
  AddBackup(app);
  AddPrune(app);
  AddDoctor(app);
  AddProgram(app, "score", "Score images with a trained model, or serve it by HTTP (tutti-score)",
             Score);
  AddProgram(app, "bench",
             "Measure images per second over models, ranks and transports (tutti-bench)",
             [](Context& context, const std::vector<std::string>& words) {
               return RunBeside(context, "tutti-bench", words);
             });
  AddProgram(app, "plan", "Predict what n nodes will do, of a recipe, a plan or a job of one node",
             Plan);
  AddCompletion(app);
  AddHidden(app);
}

CLI::App* CommandDefinitions::Add(CLI::App* parent, const std::string& name,
                                  const std::string& description, Action action) {
  CLI::App* command = parent->add_subcommand(name, description);
  command->fallthrough();  // --home may also stand after the command
  command->parse_complete_callback([this, action] { chosen_ = action; });
  return command;
}

void CommandDefinitions::AddServe(CLI::App* app) {
  CLI::App* command = Add(app, "serve", "Run the service and its virtual nodes",
                          [this](Context& context) -> absl::StatusOr<ExitCode> {
                            serve_.home = context.home;
                            const absl::Status status = wiring_.serve(serve_);
                            if (!status.ok()) return status;
                            return ExitCode::kOk;
                          });
  command->add_option("--nodes", serve_.nodes, "Make this machine so many virtual nodes")
      ->capture_default_str()
      ->check(CLI::Range(1, 64).description(""))
      ->type_name("N");
  command->add_option("--port", serve_.port, "Port to listen on; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("PORT");
  command->add_option("--bind", serve_.bind, "Numeric address to listen on")
      ->capture_default_str()
      ->type_name("ADDRESS");
  command->add_flag_callback(
      "--tls", [this] { serve_.tls = true; },
      "Speak HTTPS, also on this machine, where any user may take a port: it is the rule");
  command->add_flag_callback(
      "--no-tls", [this] { serve_.tls = false; },
      "Speak HTTP, by which nobody is proved to be the service: behind a proxy of your own");
  command->add_option("--log-level", serve_.log_level, "How much to log")
      ->capture_default_str()
      ->type_name("trace|debug|info|warn|error|off");
  command->add_option("--log-limit", serve_.log_limit, "Keep so much of each job's output")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30).description(""))
      ->type_name("MIB");
  command->add_flag_callback(
      "--no-usage", [this] { serve_.usage = false; },
      "Have no launcher measure what a job's processes use: tutti job metrics has nothing");
  command->add_flag("--mlflow", serve_.mlflow,
                    "Keep what MLflow's clients log, too: experiments, runs, metrics, artifacts");
  command->add_flag_callback(
      "--no-portal", [this] { serve_.portal = false; },
      "Serve no page (else on loopback: tutti portal)");
  command
      ->add_option("--portal-port", serve_.portal_port,
                   "Port of the page on loopback; 0: any free one (else the one behind --port)")
      ->check(CLI::Range(0, 65535).description(""))
      ->type_name("PORT");
  command->footer(
      "Ctrl-C or SIGTERM ends the service; jobs that run go on, and the next service "
      "takes them up.");
}

void CommandDefinitions::AddSettings(CLI::App* command, std::vector<std::string>* settings,
                                     std::vector<KeyOption>* keys) {
  AddKeyOptions(command, keys);
  command
      ->add_option("--set", *settings,
                   "Change a key of the job file, as in --set inputs.epochs=5; repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)  // else it takes the -- behind it, and the script's words
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandDefinitions::AddFollowing(CLI::App* command, RunOptions* options) {
  command->add_flag("-d,--detach,--no-follow", options->detach,
                    "Submit, print the job's name and return");
  command->add_flag("--cancel-on-interrupt", options->cancel_on_interrupt,
                    "Ctrl-C cancels the job without asking");
  command->add_option("--rank", options->only_rank, "Show the output of this rank only")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("R");
}

template <typename Options>
void CommandDefinitions::AddSubmission(CLI::App* command, Options* options) {
  command
      ->add_option("-f,--file,file", options->file,
                   "The job file (Azure ML v2 YAML: command, pipeline or sweep), or a script: a "
                   "Python program, a shell script, a binary")
      ->required()
      ->type_name(kFileValue);
  AddScript(command, &options->script);
  command
      ->add_option("arguments", options->script.arguments,
                   "After --: what a script is started with")
      ->type_name("ARGUMENT");
  command->add_option("--save", options->script.save, "Of a script: write the job file that it is")
      ->type_name(kFileValue);
  AddSettings(command, &options->settings, &options->keys);
  AddFormat(command, &options->format);
}

void CommandDefinitions::AddResume(CLI::App* command) {
  command
      ->add_option("--resume", submit_.resume,
                   "Begin with the outputs of this earlier job, and go on from its last checkpoint")
      ->type_name(kJobValue);
}

void CommandDefinitions::AddRun(CLI::App* app) {
  CLI::App* command = Add(app, "run", "Submit a job file or a script and follow it to its end",
                          [this](Context& context) { return Run(context, submit_); });
  AddSubmission(command, &submit_);
  AddResume(command);
  AddFollowing(command, &submit_);
  command->footer(
      "tutti run train.py --nodes 2 -- --epochs 5 runs a script without a job file.\n"
      "Output lines begin with their rank, as in \"[1] text\"; \"[1!]\" is standard error.\n"
      "Ctrl-C asks whether to cancel; without a terminal it leaves the job running.\n"
      "The folder `code:` is sent without what .amlignore or, if there is none, git's ignore files "
      "name.\n\n" +
      std::string(ExitCodeHelp()));
}

void CommandDefinitions::AddCreate(CLI::App* job) {
  CLI::App* create =
      Add(job, "create", "Submit a job and print its name", [this](Context& context) {
        submit_.detach = true;
        return Run(context, submit_);
      });
  AddSubmission(create, &submit_);
  AddResume(create);
}

void CommandDefinitions::AddRerun(CLI::App* job) {
  CLI::App* rerun = Add(job, "rerun", "Submit a job once more, as it was or with changes",
                        [this](Context& context) { return Rerun(context, submit_); });
  AddJob(rerun, &submit_.file);
  AddSettings(rerun, &submit_.settings, &submit_.keys);
  rerun->add_flag("--resume", submit_.resumes,
                  "Begin with the job's own outputs, and go on from its last checkpoint");
  rerun
      ->add_option("arguments", submit_.script.arguments,
                   "After --: what its script is started with instead")
      ->type_name("ARGUMENT");
  AddFormat(rerun, &submit_.format);
  AddFollowing(rerun, &submit_);
  rerun->footer(
      "It has the code that the job had, whatever became of the files since.\n"
      "tutti job rerun last -- --lr 0.1 tries another argument.\n"
      "tutti job rerun last --resume goes on where it ended.");
}

void CommandDefinitions::AddValidate(CLI::App* job) {
  CLI::App* validate = Add(job, "validate", "Say whether a job would be taken; submit nothing",
                           [this](Context& context) { return JobValidate(context, validate_); });
  AddSubmission(validate, &validate_);
  validate->add_flag("--offline", validate_.offline,
                     "Check the file, its paths and its code alone; ask no service");
}

void CommandDefinitions::AddUpgrade(CLI::App* job) {
  CLI::App* upgrade =
      Add(job, "upgrade", "Show a job file of Azure ML's preview of 2021 in today's schema",
          [this](Context& context) { return JobUpgrade(context, upgrade_); });
  upgrade->add_option("-f,--file,file", upgrade_.file, "The job file")
      ->required()
      ->type_name(kFileValue);
  upgrade
      ->add_option("--save", upgrade_.save,
                   "Write it to this file, the old one or a new one beside it; comments are lost")
      ->type_name(kFileValue);
}

void CommandDefinitions::AddViews(CLI::App* job) {
  CLI::App* list = Add(job, "list", "Show the newest jobs",
                       [this](Context& context) { return JobList(context, list_); });
  list->add_option("--state", list_.state, "Only those in these states, with commas between")
      ->type_name("STATE");
  list->add_option("--experiment", list_.experiment, "Only those of this experiment")
      ->type_name("NAME");
  list->add_option("--name", list_.name, "Only those whose name or title has this in it")
      ->type_name("TEXT");
  list->add_option_function<std::string>(
          "--age", [this](const std::string& text) { list_.age = ReadDuration("--age", text); },
          "Only those submitted in the last 90s, 1h30m, …")
      ->type_name("TIME");
  list->add_option("--limit", list_.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  AddFormat(list, &list_.format);

  CLI::App* show = Add(job, "show", "Show one job: facts, failures, events",
                       [this](Context& context) { return JobShow(context, show_); });
  AddJob(show, &show_.job);
  show->add_flag("--all", show_.all,
                 "All of its params, events and trials, of its runs' and of its steps' metrics");
  AddFormat(show, &show_.format);

  CLI::App* diff = Add(job, "diff", "Show what differs between two jobs: keys, code, packages",
                       [this](Context& context) { return JobDiff(context, diff_); });
  AddJob(diff, &diff_.job);
  diff->add_option("other", diff_.other,
                   "The one before; otherwise the last job of the same script or job file")
      ->type_name(kJobValue);

  CLI::App* metrics =
      Add(job, "metrics",
          "Show what a job reports (losses, scores) and uses (processors, memory, disk, network)",
          [this](Context& context) { return JobMetrics(context, metrics_); });
  AddJob(metrics, &metrics_.job);
  metrics->add_option("--rank", metrics_.only_rank, "This rank and its node only")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("R");
  metrics->add_option("--points", metrics_.points, "How many values over time (for -o json)")
      ->check(CLI::Range(1, 1440).description(""))
      ->type_name("N");
  metrics->add_flag("--follow", metrics_.follow,
                    "Print what it reports as it comes, until the job has ended");
  AddFormat(metrics, &metrics_.format);

  CLI::App* stacks = Add(job, "stacks", "Show what each rank of a job that hangs is doing",
                         [this](Context& context) { return JobStacks(context, stacks_); });
  AddJob(stacks, &stacks_.job);
  stacks->add_option("--rank", stacks_.only_rank, "This rank only")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("R");
  stacks->add_flag("--native", stacks_.native,
                   "By gdb, too, which stops each process for up to three seconds");
  stacks->add_option("--wait", stacks_.wait, "Wait so long for its nodes")
      ->capture_default_str()
      ->check(CLI::Range(1, 300).description(""))
      ->type_name("SECONDS");
  AddFormat(stacks, &stacks_.format);
}

void CommandDefinitions::AddTensorBoard(CLI::App* app) {
  CLI::App* board =
      Add(app, "tensorboard", "Show the event files of jobs in TensorBoard, also while they run",
          [this](Context& context) { return TensorBoard(context, tensorboard_); });
  board
      ->add_option("job", tensorboard_.words,
                   "The jobs: their names, the beginnings of them, or last")
      ->required()
      ->type_name(kJobValue);
  // Without this option nothing may follow --. What follows is appended to the list before.
  board->add_option("arguments", tensorboard_.more, "After --: what tensorboard is started with")
      ->type_name("ARGUMENT");
  board->footer(
      "It ends with Ctrl-C.\n"
      "tutti tensorboard last -- --port 6007 has it listen at another port.");
}

void CommandDefinitions::AddPortal(CLI::App* app) {
  CLI::App* portal = Add(app, "portal", "Open the service's page in a browser, signed in",
                         [this](Context& context) { return Portal(context, portal_); });
  portal
      ->add_option("url", portal_.url,
                   "The address of a page, which is opened signed in: somebody's link")
      ->type_name("URL");
  portal->add_flag("--print", portal_.only_print, "Print the link and start no browser");
  portal->add_flag("--sign-out", portal_.signs_out, "Sign all browsers out instead");
  portal->footer(
      "The link signs one browser in for a week, or until the service ends, and works once, "
      "within\n"
      "an hour. The page is on the loopback of the service's machine; from another one:\n"
      "  ssh -L 6281:127.0.0.1:6281 MACHINE");
}

void CommandDefinitions::AddTop(CLI::App* app) {
  CLI::App* top = Add(app, "top", "Show nodes and jobs live, or a job's ranks",
                      [this](Context& context) { return Top(context, top_); });
  top->add_option("job", top_.job,
                  "The job whose ranks are shown: its name, the beginning of it, or last")
      ->type_name(kJobValue);
  top->add_option_function<std::string>(
         "--interval",
         [this](const std::string& text) {
           top_.interval = ReadDuration("--interval", text);
           if (top_.interval >= kLeastInterval) return;
           throw CLI::ValidationError("--interval", "less than 0.1 seconds is too often");
         },
         "How long to wait between an answer and the next question (default: 2s)")
      ->type_name("TIME");
  top->add_flag("--once", top_.once, "Show it once: what a pipe gets in any case");
  AddFormat(top, &top_.format);
  top->footer(
      "Keys: q quits, arrows or j and k move, Enter shows a job's ranks, Esc goes back,\n"
      "s changes the order. \"~\" stands before what is old, or lacks some.");
}

void CommandDefinitions::AddStream(CLI::App* job) {
  CLI::App* stream = Add(job, "stream", "Show a job's states and output, live to its end",
                         [this](Context& context) { return JobStream(context, stream_); });
  AddJob(stream, &stream_.job);
  stream->add_option("--rank", stream_.only_rank, "The output of this rank only")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("R");
  stream->add_flag("--stderr", stream_.only_stderr, "Standard error only");
  stream->add_flag("--no-prefix", stream_.no_prefix, "The output alone, without ranks and states");
  stream->add_flag("--no-follow", stream_.no_follow, "End with what there is now");
  stream
      ->add_option("--since", stream_.since,
                   "Only what comes after this cursor (`-o json` shows each line's)")
      ->type_name("CURSOR");
  AddFormat(stream, &stream_.format);
}

void CommandDefinitions::AddWaitTimeout(CLI::App* wait) {
  wait->add_option_function<std::string>(
          "--timeout",
          [this](const std::string& text) { wait_.timeout = ReadDuration("--timeout", text); },
          "Give up after this time (90, 90s, 1h30m)")
      ->type_name("TIME");
}

void CommandDefinitions::AddEnds(CLI::App* job) {
  CLI::App* wait = Add(job, "wait", "Wait for a job's end; the exit code is the job's",
                       [this](Context& context) { return JobWait(context, wait_); });
  AddJob(wait, &wait_.job);
  AddWaitTimeout(wait);
  AddFormat(wait, &wait_.format);

  CLI::App* cancel = Add(job, "cancel", "End a job, whatever its state",
                         [this](Context& context) { return JobCancel(context, cancel_); });
  AddJob(cancel, &cancel_.job);
  cancel->add_flag("--wait", cancel_.wait, "Return when it has ended");
  AddFormat(cancel, &cancel_.format);
}

void CommandDefinitions::AddFiles(CLI::App* job) {
  CLI::App* download =
      Add(job, "download", "Bring a job's outputs and logs here; of one that runs what it has now",
          [this](Context& context) { return JobDownload(context, download_); });
  AddJob(download, &download_.job);
  download->add_option("-d,--directory", download_.directory, "Where to (default: ./JOB)")
      ->type_name(kFolderValue);
  download->add_flag("--all", download_.all,
                     "Of a pipeline or a sweep also all of its steps or trials, in steps/NAME and "
                     "trials/NAME");
  download->add_option("--wait", download_.wait, "Of a job that runs: wait so long for its nodes")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600).description(""))
      ->type_name("SECONDS");
  AddFormat(download, &download_.format);

  CLI::App* remove = Add(job, "delete", "Remove ended jobs with their logs and outputs",
                         [this](Context& context) { return JobDelete(context, delete_); });
  remove->add_option("job", delete_, "The jobs' names, in full")->required()->type_name(kJobValue);
}

void CommandDefinitions::AddNode(CLI::App* app) {
  CLI::App* node =
      app->add_subcommand("node", "Nodes that jobs run on: list, check, cordon, uncordon, exec");
  node->require_subcommand(1)->fallthrough();
  CLI::App* list = Add(node, "list", "Show every node and what runs on it",
                       [this](Context& context) { return NodeList(context, nodes_); });
  list->add_option("--compute", nodes_.compute, "Only those of this compute")->type_name("NAME");
  AddFormat(list, &nodes_.format);
  CLI::App* cordon = Add(node, "cordon", "Start no more jobs on a node; what runs there goes on",
                         [this](Context& context) { return NodeCordon(context, cordon_); });
  cordon->add_option("--reason", cordon_.reason, "Why, for `tutti node list`")->type_name("TEXT");
  CLI::App* uncordon = Add(node, "uncordon", "Let jobs start on a node again",
                           [this](Context& context) { return NodeUncordon(context, cordon_); });
  CLI::App* check =
      Add(node, "check", "Look at this machine's nodes now: disk, memory, GPUs, links",
          [this](Context& context) { return NodeCheck(context, cordon_); });
  check->add_option("node", cordon_.node, "The node's name (default: all)")->type_name("NODE");
  for (CLI::App* command : {cordon, uncordon}) {
    command->add_option("node", cordon_.node, "The node's name")->required()->type_name("NODE");
    command->add_option("--compute", cordon_.compute, "The node's compute (default: local)")
        ->type_name("NAME");
  }
  AddNodeExec(node);
}

void CommandDefinitions::AddPrune(CLI::App* app) {
  CLI::App* prune =
      Add(app, "prune", "Remove what the site keeps no longer (retention in site.yml)",
          [this](Context& context) { return Prune(context, prune_); });
  prune->add_flag("--dry-run", prune_.dry_run, "Show what would go, and why; remove nothing");
  prune->add_flag("--clock-is-right", prune_.clock_is_right,
                  "Go by the service's clock though it has jumped ahead");
  AddFormat(prune, &prune_.format);
}

void CommandDefinitions::AddBackup(CLI::App* app) {
  CLI::App* backup =
      Add(app, "backup", "Save the service's jobs, keys and names in a file, while it runs",
          [this](Context& context) { return Backup(context, backup_); });
  backup->add_option("file", backup_.file, "The file to make; it replaces none")
      ->required()
      ->type_name(kFileValue);
  backup->add_flag("--with-results", backup_.with_results, "With logs and results of all jobs");
  backup->add_flag("--with-secret-key", backup_.with_secret_key,
                   "With the key of the secrets: who reads the backup then reads them");
  CLI::App* restore =
      Add(app, "restore", "Make a service's folder of a backup; tutti serve then goes on with it",
          [this](Context& context) { return Restore(context, backup_); });
  restore->add_option("file", backup_.file, "The backup")->required()->type_name(kFileValue);
  restore->add_flag("--keep-queue", backup_.keep_queue,
                    "Jobs that waited for this machine's nodes wait on: the service that was saved "
                    "does not run any more, and has begun none of them since");
  restore->add_flag("--replace", backup_.replace,
                    "Over a service's folder, which is set aside as a whole: HOME.aside-DATE-TIME; "
                    "its service must have ended");
}

void CommandDefinitions::AddDoctor(CLI::App* app) {
  CLI::App* doctor = Add(app, "doctor", "Check this machine and the service",
                         [this](Context& context) { return RunDoctor(context, format_); });
  AddFormat(doctor, &format_);
}

void CommandDefinitions::AddProgram(
    CLI::App* app, const std::string& name, const std::string& description,
    const std::function<absl::StatusOr<ExitCode>(Context&, const std::vector<std::string>&)>& run) {
  CLI::App* command = app->add_subcommand(name, description);
  // All that follows is for the program, --help too.
  command->prefix_command()->set_help_flag();
  command->parse_complete_callback([this, command, run] {
    chosen_ = [command, run](Context& context) { return run(context, command->remaining()); };
  });
}

void CommandDefinitions::AddCompletion(CLI::App* app) {
  CLI::App* completion = Add(app, "completion", "Print a shell's completion script",
                             [this](Context& context) -> absl::StatusOr<ExitCode> {
                               const auto script = CompletionScript(tree_(), shell_);
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

void CommandDefinitions::AddHidden(CLI::App* app) {
  CLI::App* launch = Add(app, "launch", "Run one node's part of a job",
                         [this](Context& context) -> absl::StatusOr<ExitCode> {
                           const absl::Status status = wiring_.launch(plan_);
                           if (status.ok()) return ExitCode::kOk;
                           if (!base::SpeaksOfAFullDisk(status.message())) return status;
                           context.err << "tutti: " << status.message() << "\n";
                           return static_cast<ExitCode>(spec::kLauncherFoundDiskFull);
                         });
  launch->group("")->add_option("--plan", plan_)->required();
  CLI::App* complete =
      Add(app, "__complete", "", [](Context& context) { return CompleteJobs(context); });
  complete->group("")->add_option("what", complete_)->required();
}

}  // namespace tutti::client
