// SlurmEngine runs jobs on a Slurm cluster, whose queue is Slurm's own: an allocation is one Slurm
// job, whose batch step starts one launcher per node (batch_job.h). All that is known of it lies in
// the compute's folder, which the nodes share:
//
//   FOLDER/id                   names this tutti in the comments of its Slurm jobs
//   FOLDER/place                where the folder lay and which it was, which tells it from a copy
//   FOLDER/lock                 held by the one service whose folder it is
//   FOLDER/launcher.json        where the service is, for launchers; kept up to date
//   FOLDER/ALLOCATION/batch.sh  its existence: that it is to be, or has been, submitted
//   FOLDER/ALLOCATION/slurm-id  Slurm's number of it, once that is known
//   FOLDER/ALLOCATION/collector its existence: that its launchers do not reach the service; the
//                               process here that delivers for them while they run locks it
//   FOLDER/ALLOCATION/wish      its existence: that its Slurm job may leave out nodes that do not
//                               have its data; what it is to leave out after that
//   FOLDER/ALLOCATION/retracted Slurm's number of its job that is cancelled for another one,
//                               until slurm-id has that one's
//   FOLDER/ALLOCATION/end       how it ended; nothing of it runs any more
//   FOLDER/ALLOCATION/I/        node I's folder (docs/formats/launch-plan.md)
//
// If a compute's nodes share nothing, this folder is on this machine alone and the nodes have
// folders of their own (unshared_job.h). What a launcher that was lost had not sent yet is then
// lost with it.
//
// Invariant: sbatch is only called for an allocation that the last poll of Slurm's queue, taken
// after every earlier attempt to submit it can have taken effect, did not show. Should a Slurm job
// be there twice all the same, the marker in the nodes' folders lets one of them run. scancel is
// only called for numbers that the last poll showed with our comment: a controller that was killed
// may have lost the last jobs that it accepted, and gives their numbers again.
//
// One thread talks to Slurm; calls other than ListNodes only read and write what it knows, so a
// controller that is down holds up nobody. It polls when there is something to know, and takes
// a fortieth of the time for it, or polls every two minutes. Thread-safe; one object per folder.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/process/closed_in_children.h"
#include "base/threads/janitor.h"
#include "platform/engine/data_wish.h"
#include "platform/engine/engine.h"
#include "platform/engine/slurm/batch_job.h"
#include "platform/engine/slurm/launchers_at_work.h"
#include "platform/engine/slurm/queue_reader.h"
#include "platform/engine/slurm/slurm_allocation.h"
#include "platform/engine/slurm/slurm_commands.h"
#include "spec/site/slurm_compute.h"

namespace tutti::engine {

struct SlurmEngineOptions {
  spec::SlurmCompute compute;
  // The launcher's command line up to the plan file, as in LocalEngineOptions. The nodes see the
  // program by the same path.
  std::vector<std::string> launcher;
  // The command line, up to the allocation's folder and the service's file, of what delivers for
  // launchers that do not reach the service. It ends with this process.
  std::vector<std::string> collector;
  // That of what removes the containers of a launcher that died, up to its folder.
  std::vector<std::string> remover;
  std::filesystem::path launcher_file;  // the service's, copied into the folder; may be empty
  // For nodes that share nothing: the folder on each of them, and the snapshot that holds the
  // launcher. The compute's folder is then this machine's, and launcher_file must be there.
  std::string node_folder;
  std::string program;
  std::string storage_program;  // likewise of tutti-storage; empty: there is none
  spec::NodeChecks checks;  // of the site: what launchers look at on their nodes beside their own
  int64_t data_bytes = 0;   // of the site: what data may take on each node; 0: no limit
  absl::Duration poll_interval = absl::Seconds(1);
  absl::Duration settling = absl::Seconds(2);       // for an sbatch that was cut off to take effect
  absl::Duration slow_settling = absl::Minutes(1);  // for one that Slurm did not answer
  absl::Duration pause = absl::Seconds(5);  // after a refusal that may pass; between two scancels
  absl::Duration limit_pause = absl::Minutes(1);  // after one for a limit of submitted jobs
  size_t most_numbers = 1000;  // of jobs in one command line, also as one argument
  // How long a job waits for the nodes that have its data.
  absl::Duration preferring = absl::Seconds(10);
  absl::Duration saving = absl::Minutes(1);  // for Slurm to have on disk what it has accepted
  // How long a slurmctld that was killed may take a job for running that has ended, since it has
  // forgotten the end.
  absl::Duration forgetting = absl::Seconds(10);
  // How long slurmds may take to end jobs that their controller, come back with an older state, has
  // wait again.
  absl::Duration taking_back = absl::Seconds(10);
};

class SlurmEngine final : public Engine {
 public:
  // Opens the folder; `commands` outlives it. FailedPrecondition if another service has the folder,
  // or the folder is a copy with jobs of another's in it. Fails if it cannot read all that lies
  // there.
  static absl::StatusOr<std::unique_ptr<SlurmEngine>> Open(const SlurmEngineOptions& options,
                                                           SlurmCommands* commands);
  // Slurm's jobs go on.
  ~SlurmEngine() override;

  EngineTraits traits() const override;
  // Lists the nodes as Slurm shows them now, those of the compute's partition if it has one;
  // without folders. Unavailable if it does not answer within seconds.
  absl::StatusOr<std::vector<Node>> ListNodes() override;
  std::string WhyNeverOn(const spec::SlurmSettings& job, base::Deadline deadline) override;
  bool LaunchersReachService() const override { return !GoesByFolder(); }
  std::string SharedFolder() const override { return shared() ? options_.compute.folder : ""; }
  // Returns before Slurm knows of it. What the plans say of folders and of the service's file is
  // replaced by what is true of this compute.
  absl::Status Start(const Allocation& allocation) override;
  absl::Status Stop(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status StopPatiently(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status Kill(const std::string& allocation_id, int node_index) override;
  // Returns the states; Unavailable until Slurm has answered once, if there is anything to know.
  absl::StatusOr<std::vector<AllocationState>> Observe() override;
  void Refresh() override;
  absl::Status Release(const std::string& allocation_id) override;

 private:
  absl::Status TellToEnd(const std::string& allocation_id, absl::Duration kill_at)
      ABSL_LOCKS_EXCLUDED(mutex_);
  SlurmEngine(const SlurmEngineOptions& options, SlurmCommands* commands, std::string id,
              std::map<std::string, SlurmAllocation> known);
  bool shared() const { return options_.node_folder.empty(); }
  // Returns whether launchers that are submitted now deliver by the folder and not to the service.
  bool GoesByFolder() const;
  // Returns whether Slurm said just now that the partition may have GPUs.
  bool SawGpus(const std::string& partition) ABSL_LOCKS_EXCLUDED(gpus_mutex_);
  Allocation Localized(Allocation allocation, bool by_folder) const;
  absl::StatusOr<std::string> ScriptOf(const Allocation& allocation, const BatchJob& job) const;
  absl::Status StartHere(SlurmAllocation& known, Allocation allocation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void RunThread();                                   // the thread
  void Call() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // the thread, at once
  // Returns whether there are jobs that Slurm has, is to have or may have.
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Has what the jobs that are over have left looked at (launchers_at_work.h).
  void WatchEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PollIsDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Duration PollInterval() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  // A job that Slurm's controller no longer tells of.
  struct Forgotten {
    std::string allocation;
    int64_t number = 0;
  };
  std::vector<Forgotten> NotePoll(const absl::StatusOr<std::vector<SlurmJob>>& jobs,
                                  absl::Duration began) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Maps each allocation to the one Slurm job of it that counts.
  using JobOfEach = std::map<absl::string_view, const SlurmJob*>;
  // Chooses these among the jobs of a poll, to which they refer; the others are surplus_.
  JobOfEach ChooseJobs(const std::vector<SlurmJob>& jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes of each allocation what the poll shows of it. Returns those that Slurm no longer shows.
  std::vector<Forgotten> NoteJobs(const JobOfEach& job_of, absl::Duration began)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteShown(SlurmAllocation& known, const SlurmJob& job, absl::Duration began)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks Slurm's accounting, where there is one, how they ended.
  void EndForgotten(std::span<const Forgotten> forgotten) ABSL_LOCKS_EXCLUDED(mutex_);
  void RequestPolls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteTakenBack(SlurmAllocation& known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteEnd(SlurmAllocation& known, const SlurmJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SubmitAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Submits it; false if others that are due should wait.
  bool Submit(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does the same; `again`: Slurm refused it with its wish for nodes, or with the nodes to avoid,
  // and it is to be submitted without, now.
  bool SubmitOnce(const std::string& id, bool& again) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the command of sbatch with the allocation's wish for nodes, if it is to have one, which
  // is on record then. Asks Slurm which nodes have room.
  std::vector<std::string> WithWish(const std::string& id, std::vector<std::string> sbatch,
                                    const DataWish& wish) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many nodes those have yet to get that wish for some of the same nodes and wait.
  int NodesWishedFor(const std::string& id, const DataWish& wish) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Lets jobs that have waited long enough for the nodes with their data begin on any.
  void LiftWishes() ABSL_LOCKS_EXCLUDED(mutex_);
  void LiftWish(const std::string& id, int64_t number, const std::string& excluded)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels a job that waits and whose wish Slurm does not lift; it is submitted anew then.
  void Retract(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartCollectors() ABSL_LOCKS_EXCLUDED(mutex_);
  void StopAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // A Slurm job, and whose it is if it is not surplus.
  struct Cancelled {
    int64_t number = 0;
    std::string name, comment;  // of the Slurm job, at the last poll
    std::string allocation;
  };
  // Runs the same command for all of them. False if others should wait. scancel waits for a
  // controller that is away, and one that was killed gives numbers anew: so few jobs are named as
  // well, each in a command of its own; for many Slurm would have to list all its jobs that often.
  // For those, and for attempts of one job, which have one name, WasCancelledForAnother is there.
  bool Cancel(std::vector<std::string> command, std::span<const Cancelled> jobs)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the job may have been cancelled in place of another that had its number.
  bool WasCancelledForAnother(const SlurmJob& job) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Has the allocation begin again, whose job was.
  void NoteCancelledForAnother(SlurmAllocation& known, const SlurmJob& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the command that cancels the job, up to its number.
  std::vector<std::string> CancelCommand(const SlurmAllocation& known, bool by_force) const;
  // Copies the service's file, for launchers that reach it; a line that says why the nodes could
  // not, or "".
  std::string TellWhereTheServiceIs();

  base::ClosedInChildren lock_;  // of the folder
  const SlurmEngineOptions options_;
  SlurmCommands* const commands_;
  const std::string id_;       // of the folder
  const std::string comment_;  // what those of its jobs begin with
  std::atomic<bool> stopping_ = false;
  base::Janitor janitor_;  // of folders that are released
  LaunchersAtWork at_work_;
  // This is not held while the folder is read or written, so that who submits a job need not wait
  // for it.
  absl::Mutex gpus_mutex_;
  std::map<std::string, absl::Duration> saw_gpus_ ABSL_GUARDED_BY(gpus_mutex_);  // by partition
  absl::Mutex mutex_;
  absl::CondVar wake_;
  std::map<std::string, SlurmAllocation> known_ ABSL_GUARDED_BY(mutex_);
  // Slurm jobs that the last poll has shown and that are to be cancelled, and when not before.
  std::vector<Cancelled> surplus_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_surplus_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  // CancelledNumber says, for the number of a cancelled job, its comment and when it was cancelled.
  struct CancelledNumber {
    std::string comment;
    absl::Duration at;
  };
  std::map<int64_t, CancelledNumber> cancelled_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_submit_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Status slurm_ ABSL_GUARDED_BY(mutex_);       // of the last poll
  bool polled_ ABSL_GUARDED_BY(mutex_) = false;      // a poll has succeeded
  bool poll_is_due_ ABSL_GUARDED_BY(mutex_) = true;  // at first, and after each end: for surplus
  // When one more is due, for what was forgotten meanwhile.
  absl::Duration late_poll_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  bool hurry_ ABSL_GUARDED_BY(mutex_) = false;
  bool called_ ABSL_GUARDED_BY(mutex_) = false;  // since the thread last began
  absl::Duration last_poll_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // its end
  absl::Duration poll_cost_ ABSL_GUARDED_BY(mutex_);
  std::string told_;  // the service's file as it was copied last; the thread's
  std::thread thread_;
};

}  // namespace tutti::engine
