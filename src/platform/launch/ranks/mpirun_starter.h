// MpirunStarter has Open MPI's mpirun start the ranks: mpirun runs on the first node, its daemons
// on the others. Each rank is a small program (launch-rank) that connects to its node's launcher,
// which tells it what to run and where its output goes. mpirun reaches other nodes by an agent of
// ours, which has the first node's launcher ask theirs to run the daemon.
#pragma once

#include <map>

#include "platform/launch/ranks/external_starter.h"

namespace tutti::launch {

class MpirunStarter : public ExternalStarter {
 public:
  MpirunStarter(const StartContext& context, MpiAgreement agreement)
      : ExternalStarter(context, std::move(agreement)) {}
  absl::Status Begin() override;
  // What mpirun says of ranks that end because they are told to is no part of the job's output.
  void BeginStop(absl::Duration grace) override;
  // Reports the rank of which mpirun told that it failed in MPI.
  void OutputEnded() override;

 private:
  void HandleMessage(const RankMessage& message) override;
  void HandlePeerMessage(int node, LineSocket& peer, const nlohmann::json& message) override;
  void ProgramEnded(const StarterProgram::End& end) override;
  void RanksAreMissing(const std::string& within, const std::string& error) override;
  absl::Duration ProgramPatience(absl::Duration grace) const override;

  Variables ProgramEnvironment() const;
  absl::Status Adopt(const RankMessage& message);
  void CouldNotStart(const RankMessage& message);
  // Passes an agent's request on to the launcher of its host.
  void PassOn(const RankMessage& request);

  std::map<int, int> agents_;  // node -> the agent that waits for its answer
};

}  // namespace tutti::launch
