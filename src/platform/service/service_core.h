// The service itself; service.h says what it does. Its functions are in files by who calls them:
// service.cc, service_submit.cc, service_list.cc and service_children.cc (users), service_follow.cc
// (followers), service_launchers.cc (launchers), service_loop.cc (the loop thread), and for that
// service_observe.cc (what engines see), service_schedule.cc (which of this machine's jobs begins),
// service_flow.cc and service_steps.cc (jobs that have children), service_cluster.cc (jobs of
// engines that schedule for themselves), service_retry.cc (jobs that are begun again).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/faults.h"
#include "platform/scheduler/scheduler.h"
#include "platform/service/background_tasks.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/logs/cursor.h"
#include "platform/service/service.h"
#include "spec/file/job_file.h"

namespace tutti::service {

class ServiceCore final : public Service {
 public:
  ServiceCore(ServiceOptions options, store::Store* store, Engines engines,
              const base::Clock* clock);
  ~ServiceCore() override;
  absl::Status Rebuild();

  void Run() override;
  void Tick() override;
  void Stop() override;

  absl::StatusOr<JobStatus> Submit(const Submission& submission) override;
  absl::StatusOr<std::vector<std::string>> Check(const Submission& submission) override;
  absl::StatusOr<JobStatus> GetJob(absl::string_view id) override;
  absl::StatusOr<std::vector<store::Event>> EventsOf(absl::string_view id) override;
  absl::StatusOr<std::vector<JobStatus>> ListJobs(const store::JobFilter& filter) override;
  absl::StatusOr<std::vector<JobSummary>> ListSummaries(const store::JobFilter& filter) override;
  absl::StatusOr<std::vector<ChildStatus>> ChildrenOf(absl::string_view id) override;
  absl::StatusOr<JobStatus> Cancel(absl::string_view id) override;
  absl::Status Delete(absl::string_view id) override;
  absl::StatusOr<FollowResult> Follow(absl::string_view id, absl::string_view cursor,
                                      base::Deadline deadline) override;
  NodeList ListNodes() override;
  std::vector<std::string> Troubles() override;

  absl::StatusOr<Acknowledgement> ReportEvents(absl::string_view allocation, int node,
                                               int64_t first,
                                               const std::vector<std::string>& lines) override;
  absl::StatusOr<bool> WaitForGo(absl::string_view allocation, int node,
                                 base::Deadline deadline) override;
  absl::StatusOr<uint64_t> AppendOutput(absl::string_view allocation, int node, int rank,
                                        Stream stream, uint64_t offset,
                                        absl::string_view bytes) override;
  absl::StatusOr<std::unique_ptr<IncomingFile>> ReceiveFile(absl::string_view allocation, int node,
                                                            absl::string_view path) override;
  Snapshots& snapshots() override { return snapshots_; }
  const JobFiles& files() const override { return files_; }

 private:
  // An allocation, and the compute whose engine has it.
  struct At {
    std::string compute, allocation;
  };
  struct NodeAt {
    At at;
    int node;
  };
  struct StartOf {
    std::string compute;
    engine::Allocation allocation;
  };
  // What a complaint is of, if not of the service itself: a job, or an allocation.
  struct Subject {
    std::string job;
    At at;
  };
  struct Complaint {
    std::string why;
    Subject subject;
  };
  // What is to be done to the engines once the lock is released.
  struct Effects {
    std::vector<StartOf> starts;
    std::vector<At> stops;
    std::vector<At> releases;
    std::vector<NodeAt> kills;
    std::vector<std::function<void()>> tasks;
  };
  // An allocation that is over and still holds its nodes.
  struct Leaving {
    std::string compute;
    std::vector<std::string> nodes;  // that tutti's scheduler gave it
    absl::Time since;
    absl::Time last_stop;
  };

  // service.cc
  absl::Status RebuildJob(store::JobRecord record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A job that begins fails where its logs cannot be opened; one that runs already goes on.
  enum class OpenLogs { kNow, kWhenPossible };
  // A new allocation, with its logs.
  absl::StatusOr<std::unique_ptr<PlacedJob>> MakeGang(const std::string& job_id,
                                                      Placement placement, OpenLogs open);
  // What is known of an allocation: what its launchers have reported, and its logs.
  absl::StatusOr<std::unique_ptr<PlacedJob>> RebuildGang(const std::string& job_id,
                                                         Placement placement,
                                                         OpenLogs open = OpenLogs::kNow);
  void RestoreInterruptedDeletes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is said of a job whose logs cannot be opened now.
  std::string OutputTrouble(const std::string& job) const;
  static std::string StartTrouble(const std::string& job);
  JobStatus StatusOf(const store::JobRecord& record) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Appends an event to the store and, if that was possible, to what is in memory.
  absl::Status Append(LiveJob& job, const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_submit.cc
  // InvalidArgument names every fault that can be known before a job runs.
  absl::StatusOr<spec::ReadResult> ReadAndCheck(const Submission& submission) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the computes of it and of all below it are there and have as many nodes as it takes.
  void CheckPlaces(const spec::JobSpec& job, base::Faults& faults) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckPlace(const spec::JobSpec& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether they have what it asks of them; blocks until `deadline` at most.
  void CheckOffers(const spec::JobSpec& job, base::Deadline deadline,
                   std::set<std::string>& faults) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<store::Job> ToJob(const Submission& submission);
  absl::Status AssignSnapshots(const std::map<std::string, std::string>& sent, spec::JobSpec& job,
                               std::string& snapshot);
  absl::StatusOr<JobStatus> Insert(const store::Job& job, bool named);
  absl::Status BeginInsert(const store::Job& job);
  // Where a job can start at once, since none is ahead of it and the nodes are idle: they are held
  // for it until EndInsert. The allocation has no id yet.
  std::optional<Placement> PlaceAtOnce(const store::Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts its launchers.
  void Begin(const std::string& id) ABSL_LOCKS_EXCLUDED(tick_mutex_, mutex_);
  // The same, and waits until it is on the disk. One that does not get there is canceled.
  absl::Status BeginAndSync(const std::string& id) ABSL_LOCKS_EXCLUDED(tick_mutex_, mutex_);
  void EndInsert(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a job that has just come, and so has no children.
  LiveJob& GoLive(const store::JobRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes in what is on the disk, and says what has become of it. `placed`: as the record's last
  // event has it, if it does.
  JobStatus Adopt(const store::JobRecord& record, std::optional<Placement> placed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitInsert(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_list.cc
  JobSummary SummaryOf(const LiveJob& job) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Asks for its end; `why` is one line.
  absl::StatusOr<JobStatus> CancelLive(LiveJob& job, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DeleteOne(absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_flow.cc
  // Something of a child that becomes the parent's output `name`; all its outputs, if "".
  struct Result {
    std::filesystem::path from;
    std::string name;
  };
  absl::Status RebuildFlow(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdoptChild(LiveJob& parent, const store::JobRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refresh(const LiveJob& parent, LiveChild& child, const store::Event& last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RefreshChildren(LiveJob& parent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdvanceFlows(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the parent has ended.
  absl::StatusOr<bool> AdvanceFlow(LiveJob& parent, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> AdvancePipeline(LiveJob& parent, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> AdvanceSweep(LiveJob& parent, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string ChildId(const LiveJob& parent, absl::string_view step);
  // Whether as many trials wait in the queue as could start at once.
  bool QueuesEnough(const LiveJob& sweep) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status TellProgress(LiveJob& parent, const std::string& line)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status StopChild(LiveJob& parent, const std::string& step, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> EndFlow(LiveJob& parent, store::JobState state, const std::string& line,
                               std::vector<Result> results, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A task: links results into the folder of the job.
  void Collect(const std::string& id, const std::vector<Result>& results);

  // service_steps.cc
  absl::Status BeginStep(LiveJob& parent, const spec::Step& step, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A task. `id` is that of the step's job to be.
  StepPlan PlanStep(const spec::JobSpec& job, const std::string& snapshot, const std::string& id);
  // Of a step that has completed, before any that waits for it begins: tasks go in their order.
  void StampOnceReusable(const LiveJob& job, Effects& effects);
  void Stamp(const std::string& id);  // a task
  // `reused_from` not empty: with its end, since its results are there.
  absl::Status InsertChild(LiveJob& parent, const std::string& step, store::Job job,
                           const std::string& reused_from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_children.cc
  absl::Status FillChild(const store::JobRecord& record, ChildStatus& child);
  absl::Status FillTrials(const spec::Sweep& sweep, const std::vector<store::JobRecord>& records,
                          std::vector<ChildStatus>& children);

  // service_follow.cc
  // What a follower of a job looks at. `bell` is null once the job has ended.
  struct Watched {
    std::shared_ptr<Bell> bell;
    int64_t rings = 0;
    std::shared_ptr<JobLogs> logs;  // null before the job has any
    store::Event last;
    bool stopping = false;
  };
  absl::StatusOr<Watched> Watch(absl::string_view id);
  absl::StatusOr<FollowResult> WhatFollows(absl::string_view id, const Watched& job,
                                           const Cursor& from);

  // service_launchers.cc
  // What is noted of a job between its start and its end: on this machine its launchers do not
  // survive a loss of power either, and it ends as lost whatever was noted.
  static store::Survives NeedOf(const LiveJob& job);
  // The live job whose present attempt that allocation is, or null.
  LiveJob* LiveJobOf(absl::string_view allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same of one that has its nodes.
  LiveJob* JobOn(absl::string_view allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same, by a launcher's own call. Aborted if there is none. One that only `asks` is silent
  // all the same once it has been told to stop.
  absl::StatusOr<LiveJob*> Placed(absl::string_view allocation, int node, bool asks = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Acknowledgement> AnswerForEndedJob(absl::string_view allocation, int node,
                                                    int64_t last);

  // service_loop.cc
  void Loop();
  absl::Duration ObserveInterval() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool ObservationDue() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // nullptr if there is no such compute (any more).
  engine::Engine* EngineOf(absl::string_view compute) const;
  // Why nothing can be done for the jobs of that compute, nor heard of them; "" if it is there.
  std::string WhyOutOfReach(const std::string& compute) const;
  // Logs that could not be opened are tried again: its user may have repaired them.
  void LookAfterLogs(const std::string& job, JobLogs& logs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdvanceAll(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes every step that is possible. True if the job has left its nodes: it has ended, or is
  // Queued again.
  absl::StatusOr<bool> Advance(LiveJob& job, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the engine has yet to be told of the job.
  void AddEffects(const LiveJob& job, Effects& effects) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Perform(const Effects& effects) ABSL_LOCKS_EXCLUDED(mutex_);
  void Started(const std::string& allocation, const absl::Status& status);
  // Logs a failure once, not at every tick, and keeps it for Troubles until it is over: the same is
  // said to be OK, or what it is of has ended.
  void Complain(const std::string& about, const absl::Status& status, const Subject& subject = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a job that has ended, or is not there any more; what is said of its allocations stays.
  void ForgetComplaintsOf(absl::string_view job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job has ended. `job` is gone then.
  void EndLive(const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_observe.cc
  void Observed(const std::string& compute, const std::vector<engine::AllocationState>& states,
                Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ObservedJob(PlacedJob& job, const engine::AllocationState* state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ObservedLeaving(const std::string& compute, const engine::AllocationState& state,
                       Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpOnTheSilent(LiveJob& live, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of an allocation that is over: its launchers are to end, by force if they had their time.
  void EndLeaving(const engine::AllocationState& state, Leaving& leaving, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a cluster has yet to say how it ended a job whose launchers have ended.
  bool VerdictMayCome(const LiveJob& job) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // service_schedule.cc
  void ScheduleQueued(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False while a queue is so long, and every node so busy, that there is nothing to decide and the
  // reasons for waiting can wait a moment.
  bool SchedulingPays(absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void WakeForNewJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<scheduler::PendingJob> Pending() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // With those that are over and whose nodes are not free yet.
  std::vector<scheduler::RunningJob> Running(absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<std::string> NodeNames() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // On those nodes; without an id of the allocation.
  absl::StatusOr<Placement> PlacementOn(const spec::JobSpec& spec,
                                        const std::vector<std::string>& nodes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static std::string ReasonOfStart(const Placement& placement);
  absl::Status StartOn(LiveJob& job, const std::vector<std::string>& nodes, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_cluster.cc
  void HandOver(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a cluster says of a job that it has yet to place, or has just placed.
  void ObservedQueued(LiveJob& job, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PlaceOn(LiveJob& job, const engine::AllocationState& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the allocation is one that a cluster has just begun and that is not placed yet; has the
  // cluster looked at, if so.
  bool IsBeingPlaced(absl::string_view allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // service_retry.cc
  static std::string AllocationOf(const store::Job& job, int attempt = 1);
  static std::string AllocationOf(const LiveJob& job) {
    return AllocationOf(job.record.job, job.attempt());
  }
  engine::Allocation AllocationFor(const LiveJob& job, const Placement& placement) const;
  static bool MayBeginAgain(const LiveJob& job, const Step& end);
  // Back to Queued; its nodes are its no more.
  static std::optional<Placement> FormerAfter(const LiveJob& job);
  absl::Status BeginAgain(LiveJob& job, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether an attempt to come takes over the outputs of this allocation.
  bool IsStillNeeded(absl::string_view allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ServiceOptions options_;
  store::Store* const store_;
  const Engines engines_;
  const base::Clock* const clock_;
  Snapshots snapshots_;
  const JobFiles files_;

  mutable absl::Mutex mutex_;
  absl::CondVar wake_;     // the loop
  absl::CondVar changed_;  // a job's state, for WaitForGo
  bool dirty_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::unique_ptr<LiveJob>, std::less<>> live_ ABSL_GUARDED_BY(mutex_);
  std::set<LiveJob*> placed_ ABSL_GUARDED_BY(mutex_);  // those of live_ that have nodes
  std::set<std::string, std::less<>> inserting_ ABSL_GUARDED_BY(mutex_);  // on their way to live_
  // Nodes of jobs that are being inserted with their placement.
  std::map<std::string, std::vector<std::string>> held_ ABSL_GUARDED_BY(mutex_);
  std::set<LiveJob*> flows_ ABSL_GUARDED_BY(mutex_);  // those of live_ that have children
  absl::Time next_explanation_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, Leaving> leaving_ ABSL_GUARDED_BY(mutex_);
  std::vector<engine::Node> nodes_ ABSL_GUARDED_BY(mutex_);
  bool observed_once_ ABSL_GUARDED_BY(mutex_) = false;               // the local engine
  std::set<std::string> observed_clusters_ ABSL_GUARDED_BY(mutex_);  // those that have answered
  absl::Time last_observation_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration work_ ABSL_GUARDED_BY(mutex_);  // of the last look: the processor
  std::map<std::string, Complaint> complaints_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex tick_mutex_;  // one Tick at a time; taken before mutex_
  std::thread loop_;
  BackgroundTasks background_;
};

}  // namespace tutti::service
