// SlurmCommandsFake plays Slurm's commands for tests, from memory: it has two nodes, and a queue
// whose jobs begin at once and run until they are ended. What Slurm can do wrong it does when told.
// Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "platform/engine/slurm/slurm_commands.h"

namespace tutti::engine {

class SlurmCommandsFake final : public SlurmCommands {
 public:
  // How sbatch or squeue misbehave.
  enum class Fault {
    kNone,
    kLate,     // the work is done, and no answer comes in time
    kNothing,  // no answer comes in time, and nothing is done
    kDown,     // "Unable to contact slurm controller"; of squeue an empty queue with an error in it
    kRefuse,   // "Invalid partition"
    kFull,     // as many jobs as may be are submitted
  };

  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline,
                                    const std::atomic<bool>& cancelled) override;

  void SetFault(const std::string& program, Fault fault);
  // Lets jobs that are submitted from now on wait in the queue, or begin after all.
  void Hold(bool hold);
  // Lets jobs run on from now on that Slurm tells to end by a signal.
  void IgnoreSignals() {
    absl::MutexLock lock(&mutex_);
    ignore_signals_ = true;
  }
  // Ends the job of that allocation in that state, as "NODE_FAIL", its batch step with that code.
  void End(const std::string& allocation, const std::string& state, int exit_code = 0);
  // Completes it as one that has run; it is told to be on those nodes, since Slurm tells only the
  // ones that are not yet done.
  void Complete(const std::string& allocation, const std::string& nodes);
  // It is given its nodes, which cannot launch it and cancel it; so much later than now, or,
  // without that, at the start that it had.
  void FailLaunch(const std::string& allocation, absl::Duration later = absl::ZeroDuration());
  // Makes a second job for the allocation, as an sbatch that was repeated makes it.
  void Double(const std::string& allocation);
  // Takes jobs that have ended out of the queue.
  void Forget();
  // Acts as a controller that was killed while scancel waited for it: its numbers are other jobs'
  // now.
  void GiveNumbersAnew() {
    absl::MutexLock lock(&mutex_);
    numbers_are_anew_ = true;
  }
  // Acts so at the next scancel of several jobs: the first number is that of the allocation's job
  // by then, and of the job that had it nothing tells any more.
  void GiveNumberAnewTo(const std::string& allocation) {
    absl::MutexLock lock(&mutex_);
    gets_number_ = allocation;
  }
  // Acts as a controller that is killed before it has saved that job: nothing tells of it any more,
  // and its number is given to a job of somebody else's, which runs. Returns that number.
  int Lose(const std::string& allocation);
  std::string state(int id) const;
  // Sets what sinfo --format=%G tells, "(null)\n" at first.
  void SetGres(std::string lines) {
    absl::MutexLock lock(&mutex_);
    gres_ = std::move(lines);
  }
  // Sets what sinfo tells of the nodes' room (kRoomFormat); at first both are idle.
  void SetRoom(std::string lines) {
    absl::MutexLock lock(&mutex_);
    room_ = std::move(lines);
  }
  // Lets sacct tell from now on of the jobs that Forget takes out of the queue.
  void KeepAccounts();
  // Returns, of "sbatch" or another, how often it did something; of scancel, to how many jobs.
  int count(const std::string& program) const;
  std::vector<std::string> last_sbatch() const;

 private:
  struct Job {
    std::string name, comment, state, folder;
    int nodes = 1;
    bool is_placed = false;
    int64_t start = 0;
    int exit_code = 0;
    std::string completing;  // on which
  };
  CommandResult Sbatch(const std::vector<std::string>& arguments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string Sinfo();
  std::string Squeue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  CommandResult Sacct() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  CommandResult Scancel(const std::vector<std::string>& arguments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void TellLaunchers(const Job& job);

  mutable absl::Mutex mutex_;
  std::map<int, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Job> forgotten_ ABSL_GUARDED_BY(mutex_);
  bool keeps_accounts_ ABSL_GUARDED_BY(mutex_) = false;
  bool numbers_are_anew_ ABSL_GUARDED_BY(mutex_) = false;
  std::string gets_number_ ABSL_GUARDED_BY(mutex_);
  bool ignore_signals_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> last_sbatch_ ABSL_GUARDED_BY(mutex_);
  std::string room_ ABSL_GUARDED_BY(mutex_) = "n1|idle|0/4/0/4|main*\nn2|idle|0/4/0/4|main*\n";
  std::string gres_ ABSL_GUARDED_BY(mutex_) = "(null)\n";
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  int next_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace tutti::engine
