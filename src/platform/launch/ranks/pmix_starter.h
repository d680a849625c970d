// Starts each rank of the node as a child of this process once Slurm has started its task with
// PMIx. On the first node srun is called, as often as slurmctld is out of reach; its tasks
// (launch-pmix-task) bring each rank's PMIx variables to the launcher of its node, stay as long as
// the rank runs and end as it does.
#pragma once

#include "platform/launch/ranks/external_starter.h"

namespace tutti::launch {

class PmixStarter : public ExternalStarter {
 public:
  PmixStarter(const StartContext& context, MpiAgreement agreement)
      : ExternalStarter(context, std::move(agreement)) {}
  absl::Status Begin() override;
  absl::Duration UntilNextTask() const override;
  void RunDueTasks() override;
  void RankEnded(int rank, base::ExitStatus status) override;
  absl::Status WhyNoneBegan() const override;

 private:
  void HandleMessage(const RankMessage& message) override;
  void ProgramEnded(const StarterProgram::End& end) override;
  void RanksAreMissing(const std::string& within, const std::string& error) override;
  absl::Duration ProgramPatience(absl::Duration grace) const override { return grace; }

  absl::Status CallSrun();
  void CallSrunAgain();
  absl::Status StartRankOf(const RankMessage& message);

  std::optional<base::Deadline> srun_again_;  // when it is called again
  absl::Status taken_back_;  // what srun said last, if Slurm does not have the job run
};

}  // namespace tutti::launch
