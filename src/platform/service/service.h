// Service moves jobs through their states: it takes them in, has the scheduler decide, has the
// engine start and stop launchers, listens to what launchers report, and tells every watcher.
//
// Invariant: what is not in the store has not happened. A transition is written before its effect
// (Provisioning, with nodes, port and allocation id, before Engine::Start) and every effect can be
// repeated; so kill -9 at any instant loses nothing and runs nothing twice. What the service keeps
// in memory is rebuilt by Open from the store, the log folders and Engine::Observe.
//
//   Queued -> Provisioning -> Preparing -> Starting -> Running -> Finalizing -> Completed
//             nodes chosen    a launcher   all         all        all processes ended, or one
//                             has taken    prepared,   processes  failed, or cancel: the rest are
//                             the plan     "go" given  run        being stopped, results sent
//
// Thread-safe. One loop thread (Run) makes the decisions, but for a job that can start on this
// machine the moment it comes: the thread that submits it places it. Engines are called and files
// are opened, closed and removed by other threads, never under the lock, so that one that hangs
// holds what is its own. A call from outside that changes a job writes that to the store first, and
// wakes the loop for what follows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "platform/file_server/server_state.h"
#include "platform/health/node_check.h"
#include "platform/service/admission/submission.h"
#include "platform/service/allocation/node_list.h"
#include "platform/service/attempt/gang.h"
#include "platform/service/flow/child_status.h"
#include "platform/service/folders/folder_watch.h"
#include "platform/service/follow_result.h"
#include "platform/service/jobs/engines.h"
#include "platform/service/jobs/job_status.h"
#include "platform/service/jobs/notifier.h"
#include "platform/service/jobs/service_options.h"
#include "platform/service/logs/job_logs.h"
#include "platform/service/logs/metric_series.h"
#include "platform/service/models/registered_models.h"
#include "platform/service/monitoring/monitoring.h"
#include "platform/service/questions/open_question.h"
#include "platform/service/results/job_files.h"
#include "platform/service/results/snapshots.h"
#include "platform/service/retention/removal.h"
#include "platform/service/runs/job_runs.h"
#include "platform/service/secrets/secret_info.h"
#include "platform/service/secrets/storage_access.h"
#include "platform/service/usage/job_usage.h"
#include "platform/store/store.h"
#include "spec/json/question.h"

namespace tutti::service {

class Service {
 public:
  // Rebuilds everything; starts and stops nothing yet. `store`, engines and `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<Service>> Open(ServiceOptions options, store::Store* store,
                                                       Engines engines, const base::Clock* clock);
  // Jobs go on without the service.
  virtual ~Service() = default;

  // Starts the loop thread. Without it, Tick is the caller's to call.
  virtual void Run() = 0;
  // Observes the engine, takes every step that can be taken now, and carries out its effects.
  virtual void Tick() = 0;
  // Ends the loop thread and every wait. Called by the destructor as well.
  virtual void Stop() = 0;

  // --- For users. NotFound if there is no such job.

  // Takes a job. InvalidArgument names every fault of the job file; AlreadyExists if the name is
  // taken; ResourceExhausted if the disk has no room for what the job will have to write down. What
  // has been answered OK survives everything. A submission whose nonce a job has is answered with
  // that job; InvalidArgument if it was submitted with another file.
  virtual absl::StatusOr<JobStatus> Submit(const Submission& submission) = 0;
  // Returns what Submit would say of it, with nothing taken in: the warnings, if it would be taken.
  // Its code need not have been sent.
  virtual absl::StatusOr<std::vector<std::string>> Check(const Submission& submission) = 0;
  virtual absl::StatusOr<JobStatus> GetJob(absl::string_view id) = 0;
  // Returns the id of the newest job before `job`, of the 500 before it, that was of the same
  // script, or of the same job file; "" if there is none. Children of jobs have none.
  virtual absl::StatusOr<std::string> FormerOf(const store::Job& job) = 0;
  // Returns the job's newest `limit` events of those before event `before`, or of all if that is 0;
  // the oldest first.
  virtual absl::StatusOr<EventPage> EventsBefore(absl::string_view id, int64_t before,
                                                 int limit) = 0;
  virtual absl::StatusOr<std::vector<JobStatus>> ListJobs(const store::JobFilter& filter) = 0;
  // Returns the same jobs in short; ten thousand queued ones take some milliseconds.
  virtual absl::StatusOr<std::vector<JobSummary>> ListSummaries(const store::JobFilter& filter) = 0;
  // Returns the queue of each compute for which jobs wait, of each the first `most` jobs.
  virtual absl::StatusOr<std::vector<ComputeQueue>> ListQueues(int most) = 0;
  // Returns a pipeline's steps, or a sweep's first trials and how all of them stand; none of
  // another job.
  virtual absl::StatusOr<Children> ChildrenOf(absl::string_view id) = 0;
  // Returns a page of a sweep's trials. InvalidArgument for another job, and for a cursor of
  // another order.
  virtual absl::StatusOr<TrialPage> TrialsOf(absl::string_view id, const TrialQuery& query) = 0;
  // Returns what the job's processes use or have used. NotFound for a rank that nothing is known
  // of. Of a job that has ended it reads files, which may hang.
  virtual absl::StatusOr<JobUsageView> UsageOf(absl::string_view id, const UsageQuery& query) = 0;
  // Returns the state of each rank of the job's newest attempt, or of `only` one; none of a
  // pipeline or a sweep.
  virtual absl::StatusOr<std::vector<RankState>> RanksOf(absl::string_view id,
                                                         std::optional<int> only) = 0;
  // Returns the bytes that the largest of its ranks had at once; nothing if none was measured. May
  // read files of the job.
  virtual std::optional<uint64_t> PeakMemoryOf(absl::string_view id) = 0;
  // Returns what the job's log has (LoggedMetrics::Read). Reads files, which may hang.
  virtual absl::StatusOr<std::vector<ReportedMetric>> ReportedBy(const store::Job& job,
                                                                 const MetricQuery& query) = 0;
  // Returns the same, and what the job's run in its tracking has (JobRuns::AddTracked). Reads
  // databases, too.
  virtual absl::StatusOr<std::vector<ReportedMetric>> MetricsOf(const store::Job& job,
                                                                const MetricQuery& query) = 0;
  // Asks the launchers of a job that runs for the stacks of its ranks, or its results; waits for
  // none of them. The question is open as long as what is returned lives. FailedPrecondition for a
  // job that does not run, or whose stacks somebody else asks for; NotFound for a rank that it does
  // not have; Unavailable if too much is asked.
  virtual absl::StatusOr<std::shared_ptr<OpenQuestion>> AskLaunchers(
      absl::string_view id, const QuestionQuery& query) = 0;
  // Cancels a job in any state; returns once the request is on disk. A job that has ended, or that
  // is ending by its own failure, keeps that end.
  virtual absl::StatusOr<JobStatus> Cancel(absl::string_view id) = 0;
  // Deletes a job with its logs, outputs and children. FailedPrecondition if it has not ended, or
  // is a child itself.
  virtual absl::Status Delete(absl::string_view id) = 0;
  // Returns what comes after `cursor` ("" for the beginning), in the order in which it arrived;
  // waits for the first item until the deadline, then returns none. At most about a megabyte at a
  // time, of which the filter may leave nothing. InvalidArgument for a cursor that no item of this
  // job carried. Reads files, which may hang.
  virtual absl::StatusOr<FollowResult> Follow(absl::string_view id, absl::string_view cursor,
                                              base::Deadline deadline,
                                              const FollowFilter& filter) = 0;
  // Returns the last `limit` lines of output before `before` ("" for the end), or about a megabyte
  // of them, with the state changes among them; oldest first. What comes after the last of them is
  // told by Follow with its cursor. InvalidArgument as Follow. Reads files, which may hang, and
  // backwards, so that a long log costs no more than a short one.
  virtual absl::StatusOr<LinesPage> LinesBefore(absl::string_view id, absl::string_view before,
                                                int limit) = 0;
  // Has `wake` called when Follow may have more, as long as the subscription lives.
  virtual absl::StatusOr<Subscription> OnNewsOf(absl::string_view id,
                                                std::function<void()> wake) = 0;
  // Waits for clusters up to their engines' limits.
  virtual NodeList ListNodes() = 0;
  // Returns how the file servers of this machine stand, by name. Reads files of the service's
  // folder. FailedPrecondition if the list of them is wrong.
  virtual absl::StatusOr<std::vector<file_server::ServerStatus>> FileServers() = 0;
  // Returns what a monitor asks every few seconds; waits for no folder, engine or disk.
  virtual Monitoring Monitor(const MonitoringLimits& limits) = 0;
  // Lets no job start on the node from now on, for `reason`, until Uncordon; what runs there goes
  // on. It is on disk once it returns. InvalidArgument without a reason, FailedPrecondition for a
  // node of Slurm's, NotFound if there is no such node or, of Uncordon, no cordon of it.
  virtual absl::Status Cordon(absl::string_view compute, absl::string_view node,
                              absl::string_view reason) = 0;
  virtual absl::Status Uncordon(absl::string_view compute, absl::string_view node) = 0;
  // Removes what site.yml's `retention` keeps no longer, and says what that was; a dry run: what it
  // would be. What is in use stays, and so does what cannot be removed, which is among Problems.
  // InvalidArgument if site.yml is wrong. A place whose folders do not answer within two seconds
  // is left out, and is among Problems. FailedPrecondition while it is in doubt that this machine's
  // clock is right (retention/clock_jump.h), unless its user says that it is.
  virtual absl::StatusOr<std::vector<Removal>> Prune(const Pruning& how) = 0;
  // Gives the name a value, in place of one that it has. InvalidArgument for a name or a size that
  // no secret has; FailedPrecondition if the key cannot be used. Nothing returns a value but
  // SecretsForLauncher.
  virtual absl::Status SetSecret(absl::string_view name, absl::string_view value) = 0;
  // Lists the secrets, by name, without their values. Unavailable if the file with their key does
  // not answer; so are the other calls for secrets.
  virtual absl::StatusOr<std::vector<SecretInfo>> ListSecrets() = 0;
  // Returns the jobs that had not begun and have failed now, since they name it. NotFound.
  virtual absl::StatusOr<std::vector<std::string>> DeleteSecret(absl::string_view name) = 0;
  // Seals all of them under a new key, and forgets the former ones; returns how many they are. None
  // is changed if one cannot be read, which is FailedPrecondition.
  virtual absl::StatusOr<int> RotateSecrets() = 0;
  // Gives a user credentials for the container of an address: made of its datastore's, which they
  // do not have in them, able to read, or to write too, and of no use once the time is over.
  // InvalidArgument or NotFound for what is no address or no datastore; FailedPrecondition if none
  // can be made; Unavailable if the store's token service cannot be asked, for which it blocks.
  virtual absl::StatusOr<StorageGrant> GrantStorage(const StorageQuestion& question) = 0;
  // Makes an address by which anybody can read one object, or with `write` put it, for that time.
  virtual absl::StatusOr<SignedAddress> SignStorage(const StorageQuestion& question) = 0;
  // Registers what an ended job has left at `path` ("outputs/model", a folder or a file) as a
  // model, with what the job was made of as its lineage; `creation` has no content.
  // FailedPrecondition if the job has not ended. Copies the files.
  virtual absl::StatusOr<RegisteredVersion> RegisterFromJob(ModelCreation creation,
                                                            absl::string_view job,
                                                            absl::string_view path) = 0;
  // Deletes a version of a model, or with "" the model. FailedPrecondition if it is an input of a
  // job that has not ended.
  virtual absl::Status DeleteModel(const std::string& name, const std::string& version) = 0;
  // Returns the files of an ended job that retention has removed.
  virtual absl::StatusOr<std::vector<store::RemovedFiles>> RemovedOf(absl::string_view id) = 0;
  // Returns what became of the logs of a job whose file names a store for them; nothing of others.
  virtual absl::StatusOr<std::optional<StoredLogs>> StoredLogsOf(absl::string_view id) = 0;
  // Returns the job's run in MLflow's tracking; nothing if it has none.
  virtual absl::StatusOr<std::optional<tracking::Run>> RunOf(const store::Job& job) = 0;
  // Returns whether the token of a job's run (RunToken) opens anything now.
  virtual bool MayTrack(const std::string& run) = 0;
  // Looks at the node now and acts on it, as the service does by itself after jobs and while the
  // node is idle. Waits for disks and programs, up to NodeChecker::patience. NotFound if there is
  // no such node, FailedPrecondition for one of Slurm's.
  virtual absl::StatusOr<std::vector<health::NodeCheck>> CheckNode(absl::string_view compute,
                                                                   absl::string_view node) = 0;
  // Returns what is broken now and goes on without: a line each. Empty: nothing.
  virtual std::vector<std::string> Problems() = 0;
  // Returns whether the disk is full. Then no job, code, output or result is taken, and what runs
  // goes on. The answer is what the loop has last seen: who asks waits for no disk.
  virtual bool DiskIsFull() = 0;
  // Returns the folders that do not answer, since when. Waits for none.
  virtual std::vector<AwayFolder> AwayFolders() = 0;

  // --- For launchers (docs/formats/launch-plan.md). Aborted if the allocation is not known or is
  // over: the launcher is to end. InvalidArgument for a node, rank or stream that it does not have.

  struct Acknowledgement {
    int64_t acknowledged = 0;
    bool go = false;
    bool served = false;  // its chief has ended well, so that its launchers are told to end
  };
  virtual absl::StatusOr<Acknowledgement> ReportEvents(absl::string_view allocation, int node,
                                                       int64_t first,
                                                       const std::vector<std::string>& lines) = 0;
  // Whether the processes may start. Never, once the job is being stopped or the service ends.
  enum class Go { kNotYet, kYes, kNever };
  virtual absl::StatusOr<Go> MayGo(absl::string_view allocation, int node) = 0;
  // Has `wake` called when MayGo may say something else, as long as the subscription lives.
  virtual absl::StatusOr<Subscription> OnNewsOfAllocation(absl::string_view allocation, int node,
                                                          std::function<void()> wake) = 0;
  // Returns the values of the secrets that its job names. NotFound or FailedPrecondition, for a
  // user to read, if one is not there or cannot be read. Reads the file with their key, which may
  // hang: Unavailable then, after a while.
  virtual absl::StatusOr<SecretValues> SecretsForLauncher(absl::string_view allocation,
                                                          int node) = 0;
  // Makes its job's run in MLflow's tracking, or has it run again (JobRuns::Begin). NotFound where
  // the service has no tracking.
  virtual absl::StatusOr<JobRun> BeginRun(absl::string_view allocation, int node) = 0;
  // Returns OK for an allocation that is under way, or that a cluster is about to place.
  virtual absl::Status CheckUnderWay(absl::string_view allocation) = 0;
  // Returns the number of bytes that are kept now; see JobLogs::Append. Writes files, which may
  // hang.
  virtual absl::StatusOr<uint64_t> AppendOutput(absl::string_view allocation, int node, int rank,
                                                LogStream stream, uint64_t offset,
                                                absl::string_view bytes) = 0;
  // Takes samples of what the processes of a node use; `sent`: when, by the clock that they are
  // dated by. Waits for no disk: what cannot be kept is lost. Returns for how long the launcher is
  // to collect samples before it calls again; zero: it is not to. NotFound where the service is
  // told to have nothing measured.
  virtual absl::StatusOr<absl::Duration> TakeUsage(absl::string_view allocation, int node,
                                                   std::vector<spec::UsageSample> samples,
                                                   std::optional<absl::Time> sent) = 0;
  // Returns what the launcher of a node is asked now. Waits for nothing.
  virtual absl::StatusOr<spec::Questions> QuestionsFor(absl::string_view allocation, int node) = 0;
  // Takes its answer for a rank, JSON. NotFound if nobody waits for it; InvalidArgument if it is
  // none.
  virtual absl::Status TakeAnswer(absl::string_view allocation, int node,
                                  absl::string_view question, int rank, absl::string_view json) = 0;
  // Returns where a result file of this allocation goes, which has that many bytes, or 0 where that
  // is not known; commit it with IncomingFile::Commit. It must not outlive the service.
  // ResourceExhausted where the disk has no room for it; the job's reason says so from then on.
  // `question`: the one for whose sake the launcher sends it while its processes run, "" at their
  // end; Aborted if nobody waits for it.
  virtual absl::StatusOr<std::unique_ptr<IncomingFile>> ReceiveFile(absl::string_view allocation,
                                                                    int node,
                                                                    absl::string_view path,
                                                                    uint64_t bytes,
                                                                    absl::string_view question) = 0;

  // Takes small result files together, and returns what became of each (JobFiles::ReceiveAll).
  virtual absl::StatusOr<std::vector<absl::Status>> ReceiveFiles(
      absl::string_view allocation, int node, const std::vector<http::BatchFile>& files,
      absl::string_view question) = 0;

  // Returns the job that has that node, by a launcher's own call.
  virtual absl::StatusOr<std::string> JobOfLauncher(absl::string_view allocation, int node) = 0;

  // --- Work that touches folders, which may hang, by threads that nobody else needs.

  enum class FileWork { kOutput, kReading, kSnapshots, kSecrets };
  // Has `work` done, in its turn among that of the same queue; it is to be waited for until the
  // time that is returned (ServiceOptions::patience_with_folders). Unavailable if the folder is
  // known to be away, or what is at hand there has gone on for that long, so that it would only
  // wait: it is not done. What it refers to has to live on its own, or to be this service.
  virtual absl::StatusOr<base::Deadline> DoFileWork(FileWork kind, const std::string& queue,
                                                    std::function<void()> work) = 0;
  // Returns OK, or Unavailable if the folder that such work needs is known to be away.
  virtual absl::Status CheckFolder(FileWork kind, const std::string& queue) = 0;
  // Waits until that folder answers or is known to be away.
  virtual absl::Status AwaitFolder(FileWork kind, const std::string& queue) = 0;
  // Has `read`, which reads files of that job, done and waits for its end. False if its folder does
  // not answer by the deadline: `read` then ends later or never, so what it refers to has to live
  // on its own. While one hangs, others of the job are not begun.
  virtual bool ReadFilesOf(absl::string_view job, std::function<void()> read,
                           base::Deadline deadline) = 0;

  // Lists the allocations that have launchers, or may have any time: those of placed jobs and of
  // jobs in clusters' queues.
  virtual std::vector<std::string> AllocationsUnderWay() = 0;

  // --- Folders that hold no state of their own; thread-safe.
  virtual Snapshots& snapshots() = 0;
  virtual const JobFiles& files() const = 0;
  // Returns the allocation of a job that has its nodes, whose files that are sent while it runs
  // JobFiles finds by it; "" of another.
  virtual std::string RunningAllocationOf(absl::string_view job) = 0;

  // The registered models; thread-safe.
  virtual RegisteredModels& models() = 0;
};

}  // namespace tutti::service
