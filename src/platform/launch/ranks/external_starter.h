// ExternalStarter is the common base of the starters whose ranks are brought by another program,
// mpirun or srun: the program runs on the first node, and each rank connects to its node's launcher
// by a socket. So a launcher waits for ranks that others bring: not for ever, and not once the
// first node's launcher, which has that program, has ended.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/ranks/rank_starter.h"

namespace tutti::launch {

// StarterProgram runs a program that starts ranks for this launcher, as its child: mpirun, its
// daemon, or srun. Not thread-safe.
class StarterProgram {
 public:
  // What it prints goes to `spool`; it and all that it starts are held to `limit`. Both outlive it.
  StarterProgram(const ProcessLimit& limit, SpoolFile* spool, std::string directory)
      : limit_(limit), spool_(spool), directory_(std::move(directory)) {}

  absl::Status Start(std::vector<std::string> arguments, Variables environment);
  bool runs() const { return child_.has_value(); }
  pid_t pid() const { return child_ ? child_->pid() : -1; }

  struct End {
    bool ok = false;
    bool told = false;    // by SIGTERM: who ended it knows why
    std::string status;   // "exit code 1"
    std::string said;     // the line that says why; "" if there is none
    std::string printed;  // the last few KiB, without notices of signals that it handed on
  };
  // Call when it has ended.
  End Reap();

  // Returns the output of the last program that was started; null if there was none.
  OutputPipe* output() { return output_ ? &*output_ : nullptr; }
  // Returns ": " and the line that says best what is wrong so far; "" if there is none.
  std::string ErrorSoFar() const;

 private:
  const ProcessLimit& limit_;
  SpoolFile* const spool_;
  const std::string directory_;
  std::optional<base::ChildProcess> child_;
  std::optional<OutputPipe> output_;
};

class ExternalStarter : public RankStarter {
 public:
  bool running() const override { return program_.runs() || expects_start_; }
  void AddTo(std::vector<pollfd>& waiting) const override;
  void HandleMessages() override;
  absl::Duration UntilNextTask() const override;
  void RunDueTasks() override;
  bool ReapIfOwn(pid_t pid) override;
  void BeginStop(absl::Duration grace) override;
  std::set<pid_t> Spared() const override;
  OutputPipe* output() override { return program_.output(); }

 protected:
  // agreement.listener and agreement.link are there.
  ExternalStarter(const StartContext& context, MpiAgreement agreement);

  const spec::LaunchPlan& plan() const { return context_.plan; }
  RankTable& ranks() const { return *context_.ranks; }
  RankSupervisor& supervisor() const { return *context_.supervisor; }
  // Returns whether some of the node's ranks have not begun, and still may.
  bool AwaitsRanks() const { return !supervisor().ending() && !ranks().HasAll(); }

  // Starts the program. Called once, unless ExpectStartAgain.
  absl::Status StartProgram(std::vector<std::string> arguments, Variables environment);
  void ExpectNoStart() { expects_start_ = false; }
  void ExpectStartAgain() { expects_start_ = true; }

  virtual void HandleMessage(const RankMessage& message) = 0;
  // Called with a message from the launcher of another node.
  virtual void HandlePeerMessage(int /*node*/, LineSocket& /*peer*/,
                                 const nlohmann::json& /*message*/) {}
  // The program has ended; the messages of its ranks have been handled.
  virtual void ProgramEnded(const StarterProgram::End& end) = 0;
  // Stops, as ranks are missing; `within`: "10m"; `error`: what the program said of why, or "".
  virtual void RanksAreMissing(const std::string& within, const std::string& error) = 0;
  // Returns how long the program may stay once its ranks are to end.
  virtual absl::Duration ProgramPatience(absl::Duration grace) const = 0;

  const StartContext context_;
  MpiAgreement agreement_;

 private:
  bool IsCutOff() const;
  void HoldRankStartLimit();
  void HoldAloneLimit();
  void HandlePeerMessages();

  StarterProgram program_;
  bool expects_start_ = true;  // of the program here, or of ranks from the first node's
  const base::Deadline rank_start_limit_;
  std::optional<base::Deadline> alone_limit_;
  base::Deadline program_patience_;  // once it is to end
};

}  // namespace tutti::launch
