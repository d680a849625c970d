// SlurmAllocation is what the Slurm engine knows of one allocation, and reads and writes the files
// that record it in the shared folder. Not thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"
#include "platform/engine/data_wish.h"
#include "platform/engine/engine.h"
#include "platform/engine/slurm/launchers_at_work.h"
#include "platform/engine/slurm/queue_reader.h"

namespace tutti::engine {

// Writes Slurm's number of the allocation in that folder, for an engine that comes later.
// `durable`: also after a loss of power, where nothing else would tell that the job has run.
absl::Status WriteSlurmId(const std::filesystem::path& folder, int64_t id, bool durable);
// Brings the plans and the script of the allocation in that folder to the disk, which must be
// before sbatch: the Slurm job finds them, and an engine that comes later that there may be one.
absl::Status SyncAllocation(const std::filesystem::path& folder);

// Logs the failure to record something; the next engine finds the same out from Slurm again.
void LogError(const absl::Status& status);

struct SlurmAllocation {
  // kUncertain: an sbatch for it may have taken effect.
  enum class Stage { kToSubmit, kUncertain, kSubmitted, kEnded };

  std::filesystem::path folder;
  Stage stage = Stage::kToSubmit;
  std::vector<std::string> command;  // of sbatch; empty after a restart, until Start
  // The same without nodes to avoid, for a Slurm that has too few others; empty: it avoids none.
  std::vector<std::string> command_anywhere;
  DataWish wish;  // that it is to be submitted with
  // Its Slurm job is to exclude these once its wish is lifted, as ExcludedBy has it. Nothing: it
  // has no wish, or not any more.
  std::optional<std::string> lifts_to;
  absl::Duration next_lift = -absl::InfiniteDuration();  // not before, when one was tried
  int refused_lifts = 0;                                 // by Slurm, while it waits
  int64_t retracted = 0;  // its Slurm job that is cancelled for that, or was; 0: none
  absl::Duration since;   // SteadyNow, of the stage
  absl::Duration seen;    // when Slurm had it last, as far as is known
  bool shown = false;     // by the last poll that succeeded
  // A look showed it waiting that began after a launcher was seen to have begun: Slurm has ended
  // that run.
  bool ran_before = false;
  bool had_begun = false;    // when a poll that showed it waiting had ended
  bool was_booting = false;  // its nodes, by the last poll that showed it before its end
  absl::Time first_start = absl::InfinitePast();  // of the first run of it that a poll showed
  // When a poll first showed it to wait again, after one that had it on its nodes or after it had
  // begun: its controller came back with an older state, and slurmds end what runs of it.
  absl::Duration taken_back = absl::InfiniteDuration();
  absl::Duration settles;     // when what is uncertain can be told from a poll
  absl::Duration not_before;  // when to submit
  std::string problem;        // why it is not submitted yet
  SlurmJob job;               // as at the last poll; id 0: not known
  std::string end;            // how it ended, if there is something to say
  absl::Duration over_since;  // SteadyNow, when this engine has learned that it is over
  bool lost = false;          // it ended since it lost a node
  bool disk_full = false;     // or since its launchers found the disk that they share full
  bool stop = false;
  bool stop_is_marked = false;  // for launchers, as MarkStopped does
  bool stopped_before = false;  // by a service before this one, which may have ended it by force
  bool signalled = false;       // Slurm has passed it on
  bool was_refused = false;     // with nodes to avoid, of which Slurm may show a record
  absl::Duration next_cancel = -absl::InfiniteDuration();   // not before, when one was sent
  absl::Duration kill_at;                                   // when the Slurm job is ended by force
  bool killed = false;                                      // by force, by this engine
  std::vector<std::optional<base::ChildProcess>> couriers;  // that deliver what launchers left

  // Its launchers do not reach the service: a collector here delivers for them while they run.
  bool by_folder = false;
  std::optional<base::ChildProcess> collector;
  absl::Duration next_collector = -absl::InfiniteDuration();  // not before, when one was started

  int node_count() const { return static_cast<int>(couriers.size()); }
  std::filesystem::path node(int index) const;
  std::filesystem::path shared_plan() const { return folder / "plan.json"; }
  // Writes what its launchers read (platform/engine/plan_files.h); WritePlan of one of several
  // nodes has the shared plan beside it.
  absl::Status WritePlans(const Allocation& allocation) const;
  absl::Status WritePlan(const Allocation& allocation, int index) const;
  bool HasBegun(int index) const;  // a launcher has taken that node's plan
  bool HasBegun() const;           // on any node
  bool HasBegunEverywhere() const;
  // Returns whether a launcher has begun since Slurm last started the job. Launchers of an earlier
  // run, which Slurm has ended, do not count.
  bool HasBegunItsLastRun() const;
  bool IsDone(int index) const;
  // Returns whether launchers have begun, and none of them was told to end or has seen its ranks
  // end.
  bool HasDiedUnrequested() const;

  // Finds what an earlier engine left. NotFound if the folder holds no allocation; other errors if
  // that cannot be known.
  static absl::StatusOr<SlurmAllocation> Find(const std::filesystem::path& folder);
  absl::Status NoteId(int64_t id, bool durable);
  // Records what the Slurm job excludes once its wish is lifted, for an engine that comes later,
  // durably; nothing: it has no wish.
  absl::Status NoteWish(std::optional<std::string> excluded_later);
  // Records, durably, that its Slurm job is cancelled only to be submitted again. Slurm shows the
  // cancelled one for a while, so that the record stays until there is another.
  absl::Status NoteRetraction();
  // Removes that record, once the number of another Slurm job has been written.
  absl::Status ForgetRetraction();
  // Removes the record of its wish, and that it is retracted for it: its Slurm job has its nodes.
  absl::Status ForgetWish();
  // Has it submitted again, without a wish: its Slurm job was cancelled while it waited.
  absl::Status SubmitAnew();
  // Returns whether Slurm may have lost it, killed before it wrote down what it had just accepted;
  // and it has not begun, nor was it ever said to be on nodes.
  bool MayBeLost(absl::Duration saving) const;
  // Notes that Slurm has lost the job: it is submitted again if it has not begun after `settling`.
  absl::Status NoteLoss(absl::Duration settling);
  // Takes in what a poll shows of the job. While a job completes, Slurm names only the nodes that
  // are still completing; the names from before are kept.
  absl::Status NotePoll(const SlurmJob& seen);
  std::string LastOutput() const;  // the end of what its batch step printed
  // Returns what a launcher noted that could not take its node's plan; "" if none did.
  std::string WhatALauncherNoted() const;
  // Records that the job is over, and how, in the folder too: Slurm forgets it after some minutes.
  absl::Status NoteEnd(const std::string& how, bool lost = false);
  // Does so of one whose launchers could not begin, since the disk that they share is full.
  absl::Status NoteFullDisk(const std::string& how);
  // Records that a collector delivers for the launchers. Call it before the job is submitted.
  absl::Status PrepareCollection() const;
  // Returns whether a collector should run for it and none does.
  bool NeedsCollector();
  void EndCollector();
  absl::Status MarkStopped();  // for launchers that have yet to begin
  // Returns the state of an allocation that is over, by what is known of the launchers left. Reads
  // no file.
  AllocationState State(const std::string& id, const std::optional<LaunchersAtWork::Found>& left);

 private:
  bool SeemsToHaveBegun() const;
  // Returns whether it waits in Slurm, as far as is known, for nodes that its wish leaves it.
  bool WaitsForItsWish() const;
  void ForgetFirstRun();  // another Slurm job is its own
  void ReadEnd(const std::string& text);
  std::vector<std::string> NodeNames() const;  // none, unless all are known
};

}  // namespace tutti::engine
