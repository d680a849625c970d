// SharedState is what the classes of a service share: where things are, the one mutex, what wakes
// its threads, and the threads for what is not done under the mutex: calls on engines, files.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/threads/janitor.h"
#include "base/threads/keyed_turns.h"
#include "base/threads/work_queues.h"
#include "platform/service/attempt/hearing.h"
#include "platform/service/folders/folder_watch.h"
#include "platform/service/health/cluster_cordons.h"
#include "platform/service/jobs/engines.h"
#include "platform/service/jobs/problems.h"
#include "platform/service/jobs/service_lock.h"
#include "platform/service/jobs/service_options.h"
#include "platform/service/models/registered_models.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/results/job_files.h"
#include "platform/service/results/snapshots.h"
#include "platform/service/usage/job_usage.h"
#include "platform/store/store.h"

namespace tutti::service {

inline constexpr size_t kMostEngineThreads = 64, kMostFolderThreads = 32;
inline constexpr size_t kMostDecisionThreads = 4;  // which wait for nothing but the processor
inline constexpr absl::Duration kHangs = absl::Seconds(1);  // what reads a folder for so long

// One of a service's sets of queues. It enters itself into `all`, so that whoever starts and ends
// all of them cannot forget one.
class ServiceWork : public base::WorkQueues {
 public:
  ServiceWork(size_t most_threads, std::vector<base::WorkQueues*>& all) : WorkQueues(most_threads) {
    all.push_back(this);
  }
};

struct SharedState {
  SharedState(ServiceOptions with, store::Store* jobs, Engines where, const base::Clock* time);

  // Set once.
  const ServiceOptions options;
  store::Store* const store;
  const Engines engines;
  const base::Clock* const clock;
  Snapshots snapshots;
  const JobFiles files;
  RegisteredModels models;
  DiskGauge disk{options.directory};                // its own
  DiskGauge jobs_disk{options.directory / "jobs"};  // asked where it is another (DiskOfJobs)

  const std::shared_ptr<UsageMemory> usage_memory = std::make_shared<UsageMemory>();

  // Has the loop look at everything again, now.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    loop_has_work = true;
    wake.Signal();
  }

  // Returns the folders that work of the service waits for.
  std::vector<FolderWatch::Folder> OwnFolders() const;

  // All sets of queues that are declared below.
  std::vector<base::WorkQueues*> all_work;
  // Each compute has a queue of its own, by its name.
  ServiceWork engine_work{kMostEngineThreads, all_work};
  // Files: a queue for each job, by its id, so that a folder that hangs holds what is its own.
  ServiceWork folder_work{kMostFolderThreads, all_work};
  ServiceWork listing_work{1, all_work};  // the list of the folder of jobs, at the start
  // It finds out about a pipeline's steps before they start: it reads their inputs, which may take
  // hours, or lie on a server that is away. A pipeline has a few queues, and so has a server
  // (allocation/plan_queue.h), so that each holds a few of the threads.
  ServiceWork plan_work{kMostFolderThreads, all_work};
  // Decisions that take long to compute: a queue for each sweep.
  ServiceWork decision_work{kMostDecisionThreads, all_work};
  // Files too, for who waits for an answer (Service::DoFileWork).
  ServiceWork output_work{kMostFolderThreads, all_work};
  ServiceWork read_work{kMostFolderThreads, all_work};
  ServiceWork snapshot_work{kMostFolderThreads, all_work};  // a queue for each snapshot
  // The file with the key of secrets, and who waits for it.
  ServiceWork secret_work{2, all_work};
  // Questions whether file systems answer: a queue for each mount. And looks at paths that
  // submissions name: likewise.
  ServiceWork probe_work{kMostFolderThreads, all_work}, path_work{kMostFolderThreads, all_work};
  ServiceWork canary_work{1, all_work};  // of FolderWatch
  FolderWatch folders{options.folder_questions, [this] { return OwnFolders(); }, probe_work,
                      canary_work, clock};
  // Checks of nodes: a queue for each node. And what monitors are told of clusters' nodes: a queue
  // for each cluster, as calls of the scheduler in engine_work do not wait for a monitor.
  ServiceWork health_work{kMostFolderThreads, all_work};
  ServiceWork cordon_work{1, all_work};  // changes of cordons in the store
  // It looks at what is kept, with a queue for the folders of each compute.
  ServiceWork retention_work{kMostFolderThreads, all_work};
  ServiceWork log_work{kMostFolderThreads, all_work};  // logs to stores: a queue for each store
  ServiceWork tracking_work{1, all_work};              // ends of jobs' runs, in their database
  base::Janitor janitor;                               // of folders of jobs that are deleted
  std::atomic<bool> ending = false;                    // long work is to be given up

  absl::Mutex tick_mutex;  // one Tick at a time; taken before mutex
  // One change of a node's cordon at a time, in the store and in memory; taken before mutex.
  base::KeyedTurns cordon_turns;
  absl::Mutex mutex;      // of all that is guarded by service_lock; taken by StateLock
  absl::CondVar wake;     // the loop
  absl::CondVar changed;  // what was being inserted
  // Why the service takes nothing in, in one line; empty: the disk has room. As at the last Tick.
  std::string disk_is_full ABSL_GUARDED_BY(service_lock);
  DiskRoom disk_room ABSL_GUARDED_BY(service_lock);         // likewise
  uint64_t disk_reserve ABSL_GUARDED_BY(service_lock) = 0;  // likewise: bytes of options.reserve
  bool loop_has_work ABSL_GUARDED_BY(service_lock) = true;
  bool stopping ABSL_GUARDED_BY(service_lock) = false;
  bool local_engine_observed ABSL_GUARDED_BY(service_lock) = false;  // once, by this service
  std::vector<engine::Node> nodes ABSL_GUARDED_BY(service_lock);     // of this machine
  // The cordons of this machine's nodes, by the node's name. A cordon may be kept for a node that
  // is not there now.
  std::map<std::string, store::Cordon> cordons ABSL_GUARDED_BY(service_lock);
  ClusterCordons cluster_cordons ABSL_GUARDED_BY(service_lock);
  // The computes that take no job, for the disk that their nodes share is full: why, and when since
  // boot the next job is handed over, to see whether that is still so.
  struct FullDisk {
    std::string why;
    absl::Duration next_try;
  };
  std::map<std::string, FullDisk> full_disks ABSL_GUARDED_BY(service_lock);
  // The jobs whose results are inputs of jobs on their way into the store.
  std::multiset<std::string> inputs_on_their_way ABSL_GUARDED_BY(service_lock);
  // The jobs whose results are being removed, or have been lately, and until when they could be
  // seen, since boot: no job that looked for them before may be inserted.
  std::map<std::string, absl::Duration> leaving_results ABSL_GUARDED_BY(service_lock);
  // It keeps what ended jobs used, by their ids, until that is written.
  std::map<std::string, std::shared_ptr<JobUsage>> closing_usage ABSL_GUARDED_BY(service_lock);
  // It says when launchers of any job were heard of, by compute.
  std::map<std::string, Hearing> hearings ABSL_GUARDED_BY(service_lock);
  // Since boot: when the loop looked at the jobs last, and since when it has done so without a gap,
  // as when this machine slept.
  absl::Duration last_look ABSL_GUARDED_BY(service_lock) = -absl::InfiniteDuration();
  absl::Duration awake_since ABSL_GUARDED_BY(service_lock) = -absl::InfiniteDuration();
  Problems problems ABSL_GUARDED_BY(service_lock);
};

// Waits for the disk: what is told after it has returned OK survives a loss of power, if it was
// read before.
absl::Status AwaitDurable(SharedState& state) ABSL_LOCKS_EXCLUDED(service_lock);
// Awaits the same of what is told of a job whose last event is that one.
absl::Status AwaitDurable(SharedState& state, int64_t event) ABSL_LOCKS_EXCLUDED(service_lock);

// Has `work` do a task that needs a file system, the one of `path`, and waits for it as DoWithin
// does, but not for one that is away (FolderWatch): the task is done once that answers again.
bool DoWithin(SharedState& state, base::WorkQueues& work, const std::string& queue,
              const std::filesystem::path& path, base::WorkQueues::Task task,
              base::Deadline deadline);

// Reads as Service::ReadFilesOf says.
bool ReadFiles(SharedState& state, absl::string_view job, std::function<void()> read,
               base::Deadline deadline);

// Returns that of the disk to which jobs' output and results go. Asks their folder, which may hang.
DiskGauge& DiskOfJobs(SharedState& state);
// Tells it what has become of a write to a job's folder (DiskGauge::NoteWrite).
void NoteWriteOfJobs(SharedState& state, const absl::Status& status, uint64_t bytes = 0);

// Checks whether Snapshots::Find finds it. Unavailable if the folder of snapshots does not answer.
absl::Status FindSnapshot(SharedState& state, const std::string& name);

// Holds the mutex of the state, and with it service_lock.
class ABSL_SCOPED_LOCKABLE StateLock {
 public:
  explicit StateLock(SharedState& state) ABSL_EXCLUSIVE_LOCK_FUNCTION(service_lock)
      : lock_(&state.mutex) {}
  ~StateLock() ABSL_UNLOCK_FUNCTION() {}

 private:
  absl::MutexLock lock_;
};

// How long who takes the lock again and again leaves it to others in between: one that waits for
// it has to wake up.
inline constexpr absl::Duration kTurnOfOthers = absl::Microseconds(50);

// Calls visit(0), visit(1), … visit(count - 1) under the lock, and lets others have it after each
// `most` of them.
template <typename Visit>
void TakeTurns(SharedState& state, size_t count, size_t most, const Visit& visit)
    ABSL_LOCKS_EXCLUDED(service_lock) {
  for (size_t at = 0; at < count;) {
    {
      StateLock lock(state);
      for (const size_t end = std::min(count, at + most); at < end; ++at) visit(at);
    }
    if (at < count) absl::SleepFor(kTurnOfOthers);
  }
}

}  // namespace tutti::service
