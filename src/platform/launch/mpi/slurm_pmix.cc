#include "platform/launch/mpi/slurm_pmix.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/machine/machine.h"
#include "base/process/command.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kListing = absl::Seconds(10);

template <size_t n>
bool BeginsWithAny(absl::string_view name, const std::array<absl::string_view, n>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

bool MayUsePmix(const spec::LaunchPlan& plan, const Variables& own) {
  const bool is_even = std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const auto& node) {
    return node.process_count == plan.nodes.front().process_count;
  });
  const std::string setting = MpiSettingOf(plan);
  return is_even && setting != "mpirun" && setting != "pmi" && plan.environment.image.empty() &&
         own.contains("TUTTI_GANG") && own.contains("SLURM_JOB_ID");
}

std::string FindSrunWithPmix(const Variables& own, const std::atomic<bool>& cancelled) {
  const auto srun = base::FindProgram("srun", own);
  if (!srun.ok()) return "";
  base::ChildOptions list;
  list.arguments = {*srun, "--mpi=list"};
  list.environment = own;
  const auto listed = base::RunCommand(std::move(list), "", base::Deadline::After(kListing),
                                       base::kMostCommandOutput, &cancelled);
  if (!listed.ok()) return "";
  // A line for each kind, on one stream or the other.
  for (const absl::string_view line :
       absl::StrSplit(absl::StrCat(listed->out, listed->err), '\n')) {
    if (absl::StripAsciiWhitespace(line) == "pmix") return *srun;
  }
  return "";
}

std::vector<std::string> SrunCommand(const spec::LaunchPlan& plan, const std::string& srun) {
  const std::filesystem::path allocation = std::filesystem::path(plan.directory).parent_path();
  // The launchers have the job's processors and memory, of which these tasks take nothing. How a
  // rank's end ends the others is the launchers' to say.
  return {srun,
          "--mpi=pmix",
          "--overlap",
          "--overcommit",
          "--cpu-bind=none",
          "--mem=0",
          "--input=none",
          "--wait=0",
          "--kill-on-bad-exit=0",
          "--distribution=block",
          "--chdir=/",
          "--job-name=mpi",
          absl::StrCat("--nodes=", plan.nodes.size()),
          absl::StrCat("--ntasks=", plan.WorldSize()),
          absl::StrCat("--ntasks-per-node=", plan.node().process_count),
          "/bin/sh",
          "-c",
          absl::StrCat("cd \"$0/$SLURM_NODEID/scratch\" && exec ./", kLauncherLink, " ",
                       kPmixTaskProgram),
          allocation.string()};
}

Variables SrunEnvironment(const Variables& own) {
  static constexpr std::array<absl::string_view, 3> kOfAStep = {"SLURM_", "SRUN_", "PMI"};
  Variables variables;
  for (const auto& [name, value] : own) {
    const bool is_of_job =
        name == "SLURM_JOB_ID" || name == "SLURM_CONF" || absl::StartsWith(name, "SLURM_PMIX");
    if (is_of_job || !BeginsWithAny(name, kOfAStep)) variables[name] = value;
  }
  variables[kLauncherSocketVariable] = kLauncherSocketName;
  // Slurm's other kinds let ranks out of a fence that some are not in yet, and MPI_Init crashes.
  variables.try_emplace("SLURM_PMIX_FENCE", "ring");
  return variables;
}

bool WasNotLaunched(absl::string_view words) {
  const std::string text = absl::AsciiStrToLower(words);
  return absl::StrContains(text, "task launch") || absl::StrContains(text, "unable to create step");
}

bool FoundNoController(absl::string_view words) {
  static constexpr std::array<absl::string_view, 3> kOutOfReach = {
      "contact slurm controller", "socket timed out on send/recv", "unable to confirm allocation"};
  const std::string text = absl::AsciiStrToLower(words);
  return !absl::StrContains(text, "task launch") &&
         std::any_of(kOutOfReach.begin(), kOutOfReach.end(),
                     [&](absl::string_view said) { return absl::StrContains(text, said); });
}

bool FoundNoRunningJob(absl::string_view words) {
  return absl::StrContains(words, "onfirm allocation") &&
         (absl::StrContains(words, "pending execution") ||
          absl::StrContains(words, "Invalid job id"));
}

int RankThatLeftPmix(absl::string_view words) {
  constexpr absl::string_view kSource = "source = [slurm.pmix.";
  const size_t at = words.find(kSource);
  if (at == absl::string_view::npos) return -1;
  const absl::string_view source = words.substr(at, words.substr(at).find(']'));
  int rank = -1;
  const size_t colon = source.rfind(':');
  const bool is_named = colon != absl::string_view::npos &&
                        absl::SimpleAtoi(source.substr(colon + 1), &rank) && rank >= 0;
  return is_named ? rank : -1;
}

Variables PmixVariablesOf(const Variables& task) {
  static constexpr std::array<absl::string_view, 5> kNames = {
      "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NPROCS"};
  static constexpr std::array<absl::string_view, 3> kPrefixes = {"PMIX_", "SLURM_PMIX",
                                                                 "SLURM_STEP"};
  Variables pmix_variables;
  for (const auto& [name, value] : task) {
    const bool is_named = std::count(kNames.begin(), kNames.end(), name) > 0;
    if (is_named || BeginsWithAny(name, kPrefixes)) pmix_variables[name] = value;
  }
  return pmix_variables;
}

}  // namespace tutti::launch
