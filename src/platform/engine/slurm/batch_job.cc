#include "platform/engine/slurm/batch_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/process/command.h"
#include "spec/types/launcher_exit.h"

namespace tutti::engine {
namespace {

// Beyond the job's own limit: what staging, the end of the processes and delivery may take.
constexpr double kSlackSeconds = 600;
constexpr int kWarningSeconds = 60;
constexpr absl::string_view kExclude = "--exclude=";

// A plain user may only lower a priority, so "high" is what an sbatch of theirs has.
int NiceOf(spec::Priority priority) {
  switch (priority) {
    case spec::Priority::kHigh:
      return 0;
    case spec::Priority::kNormal:
      return 100;
    case spec::Priority::kLow:
      return 10'000;
  }
  return 0;
}

// Whole nodes with all of their processors.
bool TakesAllCpus(const spec::SlurmSettings& settings) {
  return settings.exclusive == true && settings.cpus_per_node == 0;
}

int CpusOf(const spec::SlurmSettings& settings, const Allocation& allocation) {
  if (settings.cpus_per_node > 0) return settings.cpus_per_node;
  int most = 1;
  for (const spec::PlanNode& node : allocation.plan.nodes) {
    most = std::max(most, node.process_count);
  }
  return most;
}

// A launcher on each node; or what a script asks for, whose launcher is its batch step.
std::vector<std::string> ShapeOf(const spec::SlurmSettings& settings,
                                 const Allocation& allocation) {
  if (!settings.shape.empty()) return settings.shape;
  return {absl::StrCat("--nodes=", allocation.nodes.size()), "--ntasks-per-node=1",
          absl::StrCat(TakesAllCpus(settings) ? "--mincpus=" : "--cpus-per-task=",
                       CpusOf(settings, allocation))};
}

// As sbatch reads the name of an output: "%j" would be the job's number.
std::string AsPattern(const std::filesystem::path& file) {
  return absl::StrReplaceAll(file.native(), {{"%", "%%"}});
}

bool SayMemory(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return absl::StartsWith(option, "--mem") && !absl::StartsWith(option, "--mem-b");  // where
  });
}

// A node's folder, in a script that runs there.
std::string OwnFolder(const BatchJob& job) {
  return absl::StrCat(base::ShellQuoted(job.folder.native()), "/\"$SLURM_NODEID\"");
}

// The part of a script that runs a launcher, for its `code`. Signals come to the script, which
// hands them on. Processes die with a launcher that is killed, but those of containers do not:
// podman's monitor keeps them, in cgroups that are not the job's. A second launcher ends them, and
// delivers; where that dies too, or podman fails it, only the containers are removed.
std::string Watched(const BatchJob& job, const std::string& launcher, bool has_containers) {
  const std::string containers = absl::StrCat(
      "[ $code -le 128 ] || launch\n"
      "remove() {\n  ",
      job.remover, " ", OwnFolder(job),
      " & launcher=$!\n"
      "  while wait $launcher; kill -0 $launcher 2>/dev/null; do :; done\n"
      "}\n"
      "for try in 1 2 3; do [ ! -e ",
      OwnFolder(job), "/containers ] || remove; done\n");
  return absl::StrCat("launch() {\n  ", launcher,
                      " & launcher=$!\n"
                      "  while wait $launcher; code=$?; kill -0 $launcher 2>/dev/null; do :; done\n"
                      "}\n"
                      "trap 'kill -TERM $launcher' TERM\n"
                      "launch\n",
                      has_containers ? containers : "");
}

}  // namespace

std::vector<std::string> SbatchCommand(const spec::SlurmSettings& settings,
                                       const Allocation& allocation, const BatchJob& job) {
  const spec::LaunchPlan& plan = allocation.plan;
  const bool one = allocation.nodes.size() == 1;
  std::vector<std::string> command = {
      "sbatch",
      "--parsable",
      "--no-requeue",  // a second run is tutti's to decide
      absl::StrCat("--job-name=", plan.job_id),
      absl::StrCat("--comment=", job.comment),
      absl::StrCat("--chdir=", job.shared ? job.folder.native() : "/"),
      absl::StrCat("--output=", job.shared ? AsPattern(job.folder / kBatchLog) : "/dev/null"),
      "--open-mode=append",
      absl::StrCat("--signal=", one ? "B:" : "", "TERM@", kWarningSeconds),
      absl::StrCat("--nice=", NiceOf(allocation.priority))};
  // sbatch refuses two words on memory. The compute's own gives way to what options say of it.
  const bool says_memory =
      SayMemory(settings.shape) || (allocation.slurm.memory.empty() && SayMemory(settings.options));
  for (const spec::SlurmText& text : spec::kSlurmTexts) {
    const std::string& value = settings.*text.member;
    const bool is_elsewhere = text.member == &spec::SlurmSettings::time ||
                              (text.member == &spec::SlurmSettings::memory && says_memory);
    if (!value.empty() && !is_elsewhere) {
      command.push_back(absl::StrCat("--", text.option, "=", value));
    }
  }
  if (settings.exclusive == true) command.push_back("--exclusive");
  const bool is_own = !allocation.slurm.time.empty() && !settings.time.empty();
  if (plan.timeout_seconds > 0 && !is_own) {
    const double seconds = std::min(plan.timeout_seconds + plan.grace_seconds + kSlackSeconds, 3e7);
    command.push_back(absl::StrCat("--time=", static_cast<int64_t>(std::ceil(seconds / 60))));
  } else if (!settings.time.empty()) {
    command.push_back(absl::StrCat("--time=", settings.time));
  }
  const std::vector<std::string> shape = ShapeOf(settings, allocation);
  command.insert(command.end(), shape.begin(), shape.end());
  command.insert(command.end(), settings.options.begin(), settings.options.end());
  command.push_back((job.folder / "batch.sh").native());
  return Excluding(std::move(command), allocation.avoid);
}

std::vector<std::string> Excluding(std::vector<std::string> sbatch,
                                   const std::vector<std::string>& nodes) {
  if (nodes.empty()) return sbatch;
  const std::string names = absl::StrJoin(nodes, ",");
  for (std::string& option : sbatch) {
    if (!absl::StartsWith(option, kExclude)) continue;
    absl::StrAppend(&option, ",", names);
    return sbatch;
  }
  sbatch.insert(sbatch.end() - 1, absl::StrCat(kExclude, names));  // before the script
  return sbatch;
}

std::string ExcludedBy(const std::vector<std::string>& sbatch) {
  for (const std::string& option : sbatch) {
    if (absl::StartsWith(option, kExclude)) return option.substr(kExclude.size());
  }
  return "";
}

bool NamesItsNodes(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return absl::StartsWith(option, "--nodelist") || absl::StartsWith(option, "--nodefile");
  });
}

int CpusOfNode(const spec::SlurmSettings& settings, const Allocation& allocation) {
  return settings.exclusive == true ? 0 : CpusOf(settings, allocation);
}

std::string GangScript(size_t nodes) {
  // The batch step runs on the first node, whose launcher finds its own address.
  if (nodes == 1) return "export TUTTI_GANG=\"$SLURMD_NODENAME;\"\n";
  return absl::StrCat(
      "# The nodes and their addresses, in the order of SLURM_NODEID.\n"
      "exec 3< <(scontrol show node --oneliner \"$SLURM_JOB_NODELIST\") "
      "4< <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
      "declare -A address\n"
      "while read -r -u 3 line; do\n"
      "  [[ $line =~ ^NodeName=([^ ]+)\\ .*\\ NodeAddr=([^ ]+)\\  ]] && "
      "address[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}\n"
      "done\n"
      "mapfile -t -u 4 -n ",
      nodes,
      " names\n"
      "exec 3<&- 4<&-\n"
      "TUTTI_GANG=\n"
      "for name in \"${names[@]}\"; do TUTTI_GANG+=\"$name ${address[$name]:-$name};\"; done\n"
      "export TUTTI_GANG\n");
}

std::string SrunScript(const spec::SlurmSettings& settings, const Allocation& allocation) {
  const size_t nodes = allocation.nodes.size();
  // A step that says a number has no more than that, also of nodes that the job has whole.
  const std::string cpus =
      TakesAllCpus(settings) ? "" : absl::StrCat(" --cpus-per-task=", CpusOf(settings, allocation));
  return absl::StrCat("srun --nodes=", nodes, " --ntasks=", nodes, " --ntasks-per-node=1", cpus,
                      " --export=ALL --cpu-bind=none --mpi=none --wait=0");
}

std::string BatchScript(const spec::SlurmSettings& settings, const Allocation& allocation,
                        const BatchJob& job) {
  const size_t nodes = allocation.nodes.size();
  const std::string launcher = absl::StrCat(job.program, " ", OwnFolder(job), "/plan.json");
  const bool has_containers = !allocation.plan.environment.image.empty();
  std::string script = absl::StrCat("#!/bin/bash\n# Job ", allocation.plan.job_id, " of tutti.\n",
                                    kForgetTheCluster, GangScript(nodes));
  // Slurm's accounting is to say whether the job failed; launchers themselves end with 0.
  const std::string failed =
      absl::StrCat("for file in ", base::ShellQuoted(job.folder.native()),
                   "/*/failed; do [ ! -e \"$file\" ] || [ $code = ", spec::kLauncherFoundDiskFull,
                   " ] || code=1; done\n", "exit $code\n");
  if (nodes == 1) return absl::StrCat(script, Watched(job, launcher, has_containers), failed);
  const std::string task = has_containers
                               ? absl::StrCat(Watched(job, launcher, true), "exit $code\n")
                               : absl::StrCat("exec ", launcher);
  return absl::StrCat(script, SrunScript(settings, allocation), " --kill-on-bad-exit=1 bash -c ",
                      base::ShellQuoted(task), "; code=$?\n", failed);
}

}  // namespace tutti::engine
