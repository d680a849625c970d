// Uses Slurm's PMIx for the ranks of a job that runs in Slurm: whether srun offers it, the command
// line of srun, and which of a task's variables are PMIx's. Pure but for the question to srun.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns whether srun may be asked at all, which is so on all nodes or on none: `own`, the
// launcher's environment, is that of a batch job of tutti's, whose nodes have as many ranks each,
// and kMpiVariable does not say otherwise.
bool MayUsePmix(const spec::LaunchPlan& plan, const Variables& own);

// Returns the path of srun if it offers PMIx; else empty, as when `cancelled` is set meanwhile.
std::string FindSrunWithPmix(const Variables& own, const std::atomic<bool>& cancelled);

// Returns srun's command line on the first node. Its tasks are launch-pmix-task
// (launch_programs.h), one for each rank; each finds its node's launcher by the node's number,
// which is the last part of plan.directory.
std::vector<std::string> SrunCommand(const spec::LaunchPlan& plan, const std::string& srun);

// Returns what srun is to see of `own`: no variable of the launcher's own step, which would change
// what its options mean. Fences go by ring, unless `own` says otherwise.
Variables SrunEnvironment(const Variables& own);

// Returns whether srun's last words say that slurmctld was out of reach, so that no step was made
// and srun may be called again.
bool FoundNoController(absl::string_view words);

// Returns whether they say that slurmctld, which answers, does not have the job run.
bool FoundNoRunningJob(absl::string_view words);

// Returns whether they say that Slurm has not launched all tasks of the step, or made none.
bool WasNotLaunched(absl::string_view words);

// Returns the rank that Slurm's PMIx ended the step for, since its connection closed without
// MPI_Finalize; by the last words of srun, in which slurmd says so. -1 if they do not.
int RankThatLeftPmix(absl::string_view words);

// Returns what a task's environment says of its PMIx.
Variables PmixVariablesOf(const Variables& task);

}  // namespace tutti::launch
