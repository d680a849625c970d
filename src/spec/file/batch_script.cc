#include "spec/file/batch_script.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/command.h"
#include "base/status.h"
#include "spec/command/batch_options.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

namespace fs = std::filesystem;

// Slurm sets no bound to --requeue, so this is ours.
constexpr int kRequeues = 10;

// The words after "#!": the program, and all else as one argument of it.
std::string Interpreter(absl::string_view text, Diagnostics& diagnostics) {
  const absl::string_view line =
      absl::StripAsciiWhitespace(text.substr(0, text.find('\n')).substr(2));
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(line, absl::MaxSplits(absl::ByAnyChar(" \t"), 1));
  const bool plain = std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return c == '\t' || (c < 0x80 && !absl::ascii_iscntrl(c));
  });
  if (words.first.empty() || words.first[0] != '/' || !plain) {
    diagnostics.Error(1, "the first line names no program: write #!/bin/bash");
    return "/bin/sh";
  }
  const absl::string_view argument = absl::StripAsciiWhitespace(words.second);
  return absl::StrCat(base::ShellQuoted(words.first), argument.empty() ? "" : " ",
                      argument.empty() ? "" : base::ShellQuoted(argument));
}

// Makes the job of the #SBATCH lines.
class ScriptJob {
 public:
  ScriptJob(const fs::path& base, const Site& site, Diagnostics& diagnostics)
      : folder_(base.string()), site_(site), diagnostics_(diagnostics) {
    spec_.compute = "local";
    if (site.slurm_computes.size() == 1) spec_.compute = site.slurm_computes.begin()->first;
  }

  void Take(const GivenOption& given) {
    const absl::string_view name = given.option->name;
    const std::string option =
        absl::StrCat("--", name, given.value.empty() ? "" : "=", given.value);
    if (given.option->use == BatchUse::kShape) {
      NoteCount(name, given);
      spec_.slurm.shape.push_back(option);
    } else if (given.option->use == BatchUse::kHandedOn) {
      spec_.slurm.options.push_back(option);
    } else if (std::string* const setting = Setting(name)) {
      *setting = given.value;
    } else {
      TakeOther(name, given);
    }
  }

  // `interpreter` and `script` as the command names them.
  JobSpec Finish(const std::string& interpreter, const std::string& script,
                 const std::string& submit_folder) {
    spec_.command = "script=$PWD/" + script + "\n";
    absl::StrAppend(&spec_.command, "cd ", base::ShellQuoted(folder_), " || exit 1\n");
    if (spec_.compute == "local") AddVirtualSlurm();
    absl::StrAppend(&spec_.command, "export SLURM_SUBMIT_DIR=", base::ShellQuoted(submit_folder),
                    "\nexec ", interpreter, " \"$script\"");
    return std::move(spec_);
  }

 private:
  std::string* Setting(absl::string_view name) {
    if (name == "job-name") return &spec_.display_name;
    for (const SlurmText& text : kSlurmTexts) {
      if (text.option == name && name != "time") return &(spec_.slurm.*text.member);
    }
    return nullptr;
  }

  void TakeOther(absl::string_view name, const GivenOption& given) {
    if (name == "exclusive") TakeExclusive(given);
    if (name == "requeue") spec_.max_retries = kRequeues;
    if (name == "no-requeue") spec_.max_retries = 0;
    if (name == "chdir") folder_ = (fs::path(folder_) / given.value).lexically_normal().string();
    if (name == "time") TakeTime(given);
    if (name == "clusters") TakeCompute(given);
    if (name == "signal") TakeSignal(given);
  }

  void TakeExclusive(const GivenOption& given) {
    spec_.slurm.exclusive = true;
    if (given.value.empty()) return;
    spec_.slurm.options.push_back(absl::StrCat("--exclusive=", given.value));  // among whom
  }

  // Slurm sends one, and by itself tutti asks for SIGTERM.
  void TakeSignal(const GivenOption& given) {
    if (absl::StartsWithIgnoreCase(given.value, "B:")) {
      diagnostics_.Warning(given.line,
                           "--signal=B:… has no effect: the script gets SIGTERM a minute ahead of "
                           "its time limit");
      return;
    }
    spec_.slurm.shape.push_back(absl::StrCat("--signal=", given.value));
    diagnostics_.Warning(
        given.line,
        absl::StrCat("--signal=", given.value.substr(0, 80),
                     ": in Slurm what srun starts gets it, in place of the SIGTERM that the "
                     "script gets a minute ahead of its time limit"));
  }

  void TakeTime(const GivenOption& given) {
    if (!ParseSlurmTime(given.value, time_)) {
      diagnostics_.Error(given.line,
                         absl::StrCat("--time must be MINUTES, HOURS:MINUTES:SECONDS or "
                                      "DAYS-HOURS, but is \"",
                                      given.value.substr(0, 80), "\""));
      return;
    }
    spec_.slurm.time = given.value;
  }

  void TakeCompute(const GivenOption& given) {
    const auto known = site_.computes.find(absl::AsciiStrToLower(given.value));
    if (given.value == "local") {
      spec_.compute = "local";
    } else if (known != site_.computes.end()) {
      spec_.compute = known->second;
    } else {
      diagnostics_.Error(given.line,
                         absl::StrCat("--clusters: compute \"", given.value.substr(0, 80),
                                      "\" does not exist; write \"local\" or one of "
                                      "site.yml's computes"));
    }
  }

  // Keeps the counts that virtual nodes tell the script. Slurm itself judges all other values.
  void NoteCount(absl::string_view name, const GivenOption& given) {
    int* const count = name == "nodes"           ? &nodes_
                       : name == "ntasks"        ? &tasks_
                       : name == "cpus-per-task" ? &cpus_
                                                 : nullptr;
    if (count == nullptr) return;
    const absl::string_view first = absl::string_view(given.value).substr(0, given.value.find('-'));
    if (!absl::SimpleAtoi(first, count) || *count < 1 || *count > 10'000'000) {
      diagnostics_.Error(given.line,
                         absl::StrCat("--", name, " must be a whole number from 1 on, but is \"",
                                      given.value.substr(0, 80), "\""));
    }
    if (name == "nodes") nodes_line_ = given.line;
  }

  // Adds the variables that scripts look at, where there is no Slurm to set them.
  // docs/slurm/sbatch.md lists them.
  void AddVirtualSlurm() {
    spec_.timeout = time_;
    if (nodes_ > 1) {
      diagnostics_.Warning(nodes_line_,
                           absl::StrCat("--nodes=", nodes_,
                                        " has no effect: on virtual nodes a script has one, since "
                                        "srun is not there to reach others"));
    }
    absl::StrAppend(
        &spec_.command,
        "export SLURM_JOB_ID=${TUTTI_ALLOCATION_ID##*.} SLURM_JOB_NAME=$TUTTI_JOB_ID\n"
        "SLURM_JOB_ID=${SLURM_JOB_ID%-*}\n"
        "export SLURM_JOBID=$SLURM_JOB_ID SLURM_NNODES=1 SLURM_JOB_NUM_NODES=1 "
        "SLURM_NODELIST=$TUTTI_NODE_NAME SLURM_JOB_NODELIST=$TUTTI_NODE_NAME "
        "SLURMD_NODENAME=$TUTTI_NODE_NAME SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0 "
        "SLURM_CPUS_ON_NODE=$(nproc) SLURM_NTASKS=",
        tasks_, " SLURM_NPROCS=", tasks_, " SLURM_TASKS_PER_NODE=", tasks_, "\n",
        cpus_ > 0 ? absl::StrCat("export SLURM_CPUS_PER_TASK=", cpus_, "\n") : "",
        "srun() { echo 'srun: there is no Slurm on virtual nodes: name a compute of type slurm by "
        "--clusters, or run the program itself' >&2; return 127; }\nexport -f srun\n");
  }

  JobSpec spec_;
  std::string folder_;
  const Site& site_;
  Diagnostics& diagnostics_;
  absl::Duration time_ = absl::InfiniteDuration();
  int nodes_ = 1, nodes_line_ = 1, tasks_ = 1, cpus_ = 0;
};

}  // namespace

bool IsBatchScript(absl::string_view text) { return absl::StartsWith(text, "#!"); }

Reading ReadBatchScript(absl::string_view text, absl::string_view file_name,
                        const fs::path& base_directory, const Site& site) {
  Diagnostics diagnostics(file_name);
  ScriptJob job(base_directory, site, diagnostics);
  for (const GivenOption& given : ReadBatchOptions(text, diagnostics)) job.Take(given);
  const std::string interpreter = Interpreter(text, diagnostics);
  const fs::path name = fs::path(std::string(file_name)).filename();
  JobSpec spec = job.Finish(interpreter, base::ShellQuoted(name.string()), base_directory.string());
  spec.code = (base_directory / name).string();
  spec.code_line = 1;
  spec.command_line = 1;
  spec.file_name = std::string(file_name);
  spec.experiment_name = base_directory.filename().string();
  // Folders and options may have what looks like an expression of a job file.
  for (const ExpressionError& error : CheckExpressions(spec.command, {}, {})) {
    diagnostics.Error(1, error.message);
  }
  // All lines together say what is asked of which cluster.
  if (diagnostics.error_count() > 0) spec.compute.clear();
  return {{std::move(spec), diagnostics.warnings()}, diagnostics.status()};
}

}  // namespace tutti::spec
