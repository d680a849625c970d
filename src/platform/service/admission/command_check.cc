#include "platform/service/admission/command_check.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/text/closest.h"
#include "spec/command/first_program.h"
#include "spec/environment/process_path.h"
#include "spec/site/requirement.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

// BASH_ENV and BASH_FUNC_name%%.
bool MayDefineFunctions(const std::map<std::string, std::string>& variables) {
  const auto first = variables.lower_bound("BASH_");
  return first != variables.end() && absl::StartsWith(first->first, "BASH_");
}

// The folders of `path`; none if one of them is in the job's own folder or yet to be known.
std::vector<std::string> FoldersOf(absl::string_view path) {
  if (absl::StrContains(path, "${{")) return {};
  std::vector<std::string> folders;
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    if (absl::StartsWith(folder, "$")) continue;  // "$PATH" of a job file: nobody expands it
    if (!absl::StartsWith(folder, "/")) return {};
    folders.emplace_back(folder);
  }
  return folders;
}

std::string Suggestion(absl::string_view name, const std::vector<std::string>& folders) {
  std::set<std::string> programs;
  std::error_code error;
  for (const std::string& folder : folders) {
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      programs.insert(entry->path().filename());
    }
  }
  const std::vector<absl::string_view> candidates(programs.begin(), programs.end());
  return base::DidYouMean(name, candidates);
}

std::string Message(const spec::JobSpec& job, absl::string_view who, absl::string_view program,
                    absl::string_view suggestion) {
  const absl::string_view path = job.environment_variables.contains("PATH")
                                     ? "the PATH of environment_variables"
                                     : "the service's PATH";
  const std::string remedy =
      job.compute == "local"
          ? "; install it, or name an environment that has it"
          : absl::StrCat("; the nodes of compute \"", job.compute, "\" must have it");
  return absl::StrCat(job.file_name, ":", job.command_line, ": ", who, " runs \"", program,
                      "\", which is not in ", path, suggestion, remedy);
}

std::string Message(const spec::JobSpec& job, const spec::Program& program) {
  const std::string start = absl::StrCat(program.location, ": conda's \"", program.package,
                                         "\" is not installed by tutti: \"", program.name, "\" ");
  if (!job.environment.image.empty()) return absl::StrCat(start, "must be in the image");
  const std::string install = job.compute == "local" ? "install it"
                                                     : absl::StrCat("the nodes of compute \"",
                                                                    job.compute, "\" must have it");
  return absl::StrCat(start, "is not in the service's PATH; ", install,
                      ", or say in site.yml that jobs do without it: conda_packages: {",
                      program.package, ": \"\"}");
}

class Check {
 public:
  Check(const MachineFacts& facts, std::vector<std::string>& warnings)
      : facts_(facts), warnings_(warnings) {}

  void LookAt(const spec::JobSpec& job, bool is_step) {
    for (const spec::Step& step : job.steps) LookAt(step.job, true);
    if (job.kind == spec::JobKind::kPipeline) return;
    LookAtLength(job);
    WarnOfLightning(job);
    const std::vector<std::string> folders =
        FoldersOf(spec::ProcessPath(job.environment_variables, facts_.own, facts_.program_folder));
    if (!folders.empty()) LookAtPrograms(job, folders);
    if (folders.empty() || !job.environment.is_host) return;
    const spec::DistributionDriver& driver = spec::DriverOf(job.distribution);
    if (!driver.program.empty() && !Has(folders, std::string(driver.program))) {
      const bool is_sure = job.compute == "local" && !is_step;
      (is_sure ? errors_ : warnings_)
          .push_back(Message(job, absl::StrCat("a ", driver.type, " job"),
                             std::string(driver.program), ""));
    }
    LookAtFirst(job, is_step, folders);
  }

  absl::Status status() const {
    if (errors_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
  }

 private:
  void LookAtLength(const spec::JobSpec& job) {
    // The reader of job files checks the length of the variables.
    const std::string too_long = base::WhatIsTooLong({job.command}, {});
    if (too_long.empty()) return;
    errors_.push_back(absl::StrCat(job.file_name, ":", job.command_line, ": ", too_long));
  }

  // Lightning takes LOCAL_RANK, which each process has, to say that all processes have been
  // started.
  void WarnOfLightning(const spec::JobSpec& job) {
    const bool is_per_node = job.instance_count > 1 && job.ProcessesOfANode() == 1 &&
                             spec::DriverOf(job.distribution).may_be_lightning;
    if (!is_per_node || !HasLightning(job.environment)) return;
    for (const absl::string_view starter :
         {"LOCAL_RANK", "torchrun", "torch.distributed", "accelerate"}) {
      if (absl::StrContains(job.command, starter)) return;
    }
    warnings_.push_back(absl::StrCat(
        job.file_name, ":", job.command_line, ": one process is started on each of ",
        job.instance_count,
        " nodes, and Lightning starts no others beside a LOCAL_RANK: a Trainer "
        "of more devices than one waits for ever. Give distribution: {type: pytorch, "
        "process_count_per_instance: DEVICES} (PyTorchConfiguration: process_count of all nodes), "
        "or begin the command with env -u RANK -u LOCAL_RANK -u WORLD_SIZE (docs/launchers.md)"));
  }

  static bool HasLightning(const spec::Environment& environment) {
    return std::any_of(environment.packages.begin(), environment.packages.end(),
                       [](const spec::Requirement& package) {
                         const std::string name = spec::PackageName(package.text);
                         return name == "lightning" || name == "pytorch-lightning";
                       });
  }

  static bool Has(const std::vector<std::string>& folders, const std::string& program) {
    return base::FindProgram(program, {{"PATH", absl::StrJoin(folders, ":")}}).ok();
  }

  void LookAtPrograms(const spec::JobSpec& job, const std::vector<std::string>& folders) {
    const bool in_image = !job.environment.image.empty();
    for (const spec::Program& program : job.environment.programs) {
      if (!in_image && Has(folders, program.name)) continue;
      const bool is_sure = job.compute == "local" && !in_image;
      (is_sure ? errors_ : warnings_).push_back(Message(job, program));
    }
  }

  void LookAtFirst(const spec::JobSpec& job, bool is_step,
                   const std::vector<std::string>& folders) {
    if (MayDefineFunctions(job.environment_variables)) return;
    const spec::FirstProgram program = spec::FirstProgramOf(job.command);
    if (program.name.empty() || Has(folders, program.name)) return;
    const bool is_sure = program.decides && job.compute == "local" && !is_step;
    (is_sure ? errors_ : warnings_)
        .push_back(Message(job, "the command", program.name, Suggestion(program.name, folders)));
  }

  const MachineFacts& facts_;
  std::vector<std::string>& warnings_;
  std::vector<std::string> errors_;
};

}  // namespace

absl::Status CheckCommand(const spec::JobSpec& job, const MachineFacts& facts,
                          std::vector<std::string>& warnings) {
  Check check(facts, warnings);
  check.LookAt(job, false);
  return check.status();
}

}  // namespace tutti::service
