#include "platform/engine/slurm/slurm_commands.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/match.h"

namespace tutti::engine {
namespace {

// squeue --json says some kilobytes of each job, and what is cut could not be read.
constexpr size_t kMostOutput = 512 << 20;

// Options by another name: SCANCEL_STATE=PENDING would have what runs cancelled in words alone.
constexpr std::array<absl::string_view, 7> kPrefixes = {"SLURM_",   "SLURMD_", "SBATCH_", "SQUEUE_",
                                                        "SCANCEL_", "SINFO_",  "SACCT_"};

std::map<std::string, std::string> EnvironmentOfCommands() {
  std::map<std::string, std::string> environment = base::CurrentEnvironment();
  std::erase_if(environment, [](const auto& entry) {
    const std::string& name = entry.first;
    const bool says_where = name == "SLURM_CONF" || name == "SLURM_JWT" || name == "SLURM_CLUSTERS";
    return !says_where &&
           std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
  });
  return environment;
}

}  // namespace

absl::StatusOr<CommandResult> RealSlurmCommands::Run(const std::vector<std::string>& arguments,
                                                     base::Deadline deadline,
                                                     const std::atomic<bool>& cancelled) {
  base::ChildOptions options;
  options.arguments = arguments;
  options.environment = EnvironmentOfCommands();
  options.directory = "/";
  return base::RunCommand(std::move(options), "", deadline, kMostOutput, &cancelled);
}

}  // namespace tutti::engine
