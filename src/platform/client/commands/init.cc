#include <unistd.h>

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/script/script_file.h"
#include "platform/client/submit/submit.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// Puts questions to a user at a terminal. Cancelled at the end of the input.
class Questions {
 public:
  explicit Questions(std::ostream& out) : out_(out) {}

  // The answer, or `otherwise` for an empty one.
  absl::StatusOr<std::string> Ask(const std::string& question, const std::string& otherwise) {
    out_ << question << (otherwise.empty() ? "" : absl::StrCat(" [", otherwise, "]")) << ": "
         << std::flush;
    std::string line;
    if (!std::getline(std::cin, line)) return absl::CancelledError("no answer: nothing was made");
    const std::string answer(absl::StripAsciiWhitespace(line));
    return answer.empty() ? otherwise : answer;
  }

  void Say(const std::string& line) { out_ << line << std::endl; }

  absl::StatusOr<int> AskNumber(const std::string& question) {
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(const std::string answer, Ask(question, "1"));
      int number = 0;
      if (absl::SimpleAtoi(answer, &number) && number > 0) return number;
      Say("a number from 1 on, please");
    }
  }

 private:
  std::ostream& out_;
};

// One word that ends or begins as a script's path does.
bool LooksLikeAScript(absl::string_view what) {
  if (absl::StrContains(what, ' ')) return false;
  return absl::EndsWith(what, ".py") || absl::EndsWith(what, ".sh") ||
         absl::StartsWith(what, "./") || absl::StartsWith(what, "../");
}

bool IsRegularFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Returns the command that starts a file which is no script by KindOfScript. A shell script with
// lines for sbatch, which are comments to a shell, is started by a shell; any other file is a
// program.
std::string CommandOfFile(const std::string& file) {
  return absl::EndsWith(file, ".sh") ? absl::StrCat("bash ", ShellWord(file)) : file;
}

// Asks what to run: a script's path, or a command if there is no such script.
absl::Status AskWhat(Questions& questions, InitOptions& options) {
  if (!options.script.empty() || !options.command.empty()) return absl::OkStatus();
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::string what,
                           questions.Ask("1/3 What is run: a script, or a command", ""));
    if (what.empty()) continue;
    const bool is_script = KindOfScript(what) != ScriptKind::kNone;
    if (is_script) {
      options.script = what;
    } else if (!LooksLikeAScript(what)) {
      options.command = what;
    } else if (IsRegularFile(what)) {
      options.command = CommandOfFile(what);
      questions.Say(absl::StrCat("the command is ", options.command));
    } else {
      questions.Say(absl::StrCat("there is no script ", what, " here"));
      continue;
    }
    return absl::OkStatus();
  }
}

absl::Status AskAll(std::ostream& out, InitOptions& options) {
  Questions questions(out);
  TUTTI_RETURN_IF_ERROR(AskWhat(questions, options));
  ScriptOptions& job = options.job;
  if (job.nodes == 0) {
    TUTTI_ASSIGN_OR_RETURN(job.nodes, questions.AskNumber("2/3 On how many nodes"));
  }
  if (job.processes_per_node == 0 && job.gpus == 0) {
    TUTTI_ASSIGN_OR_RETURN(job.processes_per_node,
                           questions.AskNumber("    with how many processes on each"));
  }
  if (job.environment.empty()) {
    TUTTI_ASSIGN_OR_RETURN(
        job.environment,
        questions.Ask("3/3 With what installed: host (this machine's), a file (requirements.txt, "
                      "conda.yaml), a name; empty: what is beside it",
                      ""));
  }
  return absl::OkStatus();
}

absl::Status Complete(Context& context, InitOptions& options) {
  if (!options.script.empty() && !options.command.empty()) {
    return absl::InvalidArgumentError("--script and --command: a job has one of them");
  }
  if (::isatty(STDIN_FILENO) == 1) {
    TUTTI_RETURN_IF_ERROR(CheckIsFree(options.file));  // before anyone answers for nothing
    return AskAll(context.err, options);
  }
  if (options.script.empty() && options.command.empty()) {
    return absl::InvalidArgumentError(
        "there is no terminal to ask at: say what is run by --script FILE or --command COMMAND");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> Init(Context& context, const InitOptions& given) {
  InitOptions options = given;
  TUTTI_RETURN_IF_ERROR(Complete(context, options));
  options.job.save = options.file;  // from whose folder its paths count
  if (!options.script.empty() && KindOfScript(options.script) == ScriptKind::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("--script ", options.script,
                     IsRegularFile(options.script)
                         ? ": it is no Python, has no #! line, or has lines for sbatch, with which "
                           "tutti run takes it as it is: say what starts it by --command"
                         : ": there is no such script"));
  }
  TUTTI_ASSIGN_OR_RETURN(const ScriptJob job,
                         options.script.empty()
                             ? JobOfCommand(options.command, fs::current_path(), options.job)
                             : JobOfScript(options.script, options.job));
  TUTTI_RETURN_IF_ERROR(SaveJob(job.text, options.file));
  for (const std::string& remark : job.remarks) context.err << remark << "\n";
  context.out << options.file << " is made; run it: tutti run " << ShellWord(options.file) << "\n";
  const auto checked = CheckJob(nullptr, context.home, {.path = options.file});
  if (!checked.ok()) return checked.status();  // it is there, to be corrected by hand
  for (const std::string& warning : checked->warnings)
    context.err << "warning: " << warning << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
