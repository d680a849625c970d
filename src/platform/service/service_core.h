// ServiceCore implements Service; service.h says what it does. It puts the classes that do it
// together and has the loop, whose one turn is Tick:
//
//   have the engines looked at (allocation/observer.h); under the lock take every step that a
//   placed job can take (allocation/job_progress.h), that a pipeline or a sweep can take (flow/),
//   start what waits (allocation/local_scheduler.h, cluster_queue.h); then hand what follows to
//   other threads: calls on engines (allocation/engine_calls.h), files (SharedState::folder_work)
//
// Who holds the lock waits for nothing but a commit of the store, and no commit of a step waits for
// the disk (store::Durability::kDeferred). What comes of an effect is noted under the lock by the
// thread that has done it, which wakes the loop.
//
// A step is written before its effect begins, and what a loss of power must not take is on the
// disk before anything follows from it and before anybody is told of it (EngineCalls::Perform,
// Durable); an effect that a crash cut short is begun again. Users come by admission/admission.h
// and jobs/job_views.h, followers by follower.h, launchers by launcher_reports.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/service/admission/admission.h"
#include "platform/service/allocation/cluster_queue.h"
#include "platform/service/allocation/cordons.h"
#include "platform/service/allocation/data_holders.h"
#include "platform/service/allocation/engine_calls.h"
#include "platform/service/allocation/job_output.h"
#include "platform/service/allocation/job_progress.h"
#include "platform/service/allocation/leaving_allocations.h"
#include "platform/service/allocation/list_nodes.h"
#include "platform/service/allocation/local_scheduler.h"
#include "platform/service/allocation/node_health.h"
#include "platform/service/allocation/observation_schedule.h"
#include "platform/service/allocation/observer.h"
#include "platform/service/flow/child_views.h"
#include "platform/service/flow/flow_runner.h"
#include "platform/service/flow/past_trials.h"
#include "platform/service/follower.h"
#include "platform/service/jobs/insertions.h"
#include "platform/service/jobs/job_deletion.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/jobs/job_views.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/launcher_reports.h"
#include "platform/service/monitoring/cluster_nodes.h"
#include "platform/service/questions/open_questions.h"
#include "platform/service/retention/in_use.h"
#include "platform/service/retention/pruner.h"
#include "platform/service/runs/job_runs.h"
#include "platform/service/secrets/secrets.h"
#include "platform/service/secrets/storage_access.h"
#include "platform/service/service.h"
#include "platform/service/stored_logs/log_storage.h"

namespace tutti::service {

// EventLogger writes each event of each job as a line of the service's log.
class EventLogger final : public EventListener {
 public:
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
};

class ServiceCore final : public Service {
 public:
  ServiceCore(ServiceOptions options, store::Store* store, Engines engines,
              const base::Clock* clock);
  ~ServiceCore() override;
  absl::Status Rebuild();

  void Run() override;
  void Tick() override;
  void Stop() override;

  absl::StatusOr<JobStatus> Submit(const Submission& submission) override {
    return admission_.Submit(submission);
  }
  absl::StatusOr<std::vector<std::string>> Check(const Submission& submission) override {
    return admission_.Check(submission);
  }
  absl::StatusOr<JobStatus> GetJob(absl::string_view id) override {
    scheduler_.Explain();
    return Durable(views_.Get(id));
  }
  absl::StatusOr<std::string> FormerOf(const store::Job& job) override {
    return views_.FormerOf(job);
  }
  absl::StatusOr<EventPage> EventsBefore(absl::string_view id, int64_t before, int limit) override {
    return Durable(views_.EventsBefore(id, before, limit));
  }
  absl::StatusOr<std::vector<JobStatus>> ListJobs(const store::JobFilter& filter) override {
    scheduler_.Explain();
    return Durable(views_.List(filter));
  }
  absl::StatusOr<std::vector<JobSummary>> ListSummaries(const store::JobFilter& filter) override {
    scheduler_.Explain();
    return Durable(views_.ListSummaries(filter));
  }
  absl::StatusOr<std::vector<ComputeQueue>> ListQueues(int most) override {
    scheduler_.Explain();
    return Durable(absl::StatusOr<std::vector<ComputeQueue>>(views_.ListQueues(most)));
  }
  absl::StatusOr<Children> ChildrenOf(absl::string_view id) override {
    scheduler_.Explain();
    return Durable(children_.ChildrenOf(id));
  }
  absl::StatusOr<TrialPage> TrialsOf(absl::string_view id, const TrialQuery& query) override {
    scheduler_.Explain();
    return Durable(children_.TrialsOf(id, query));
  }
  absl::StatusOr<JobUsageView> UsageOf(absl::string_view id, const UsageQuery& query) override;
  absl::StatusOr<std::vector<RankState>> RanksOf(absl::string_view id,
                                                 std::optional<int> only) override {
    return views_.RanksOf(id, only);
  }
  std::optional<uint64_t> PeakMemoryOf(absl::string_view id) override;
  absl::StatusOr<std::vector<ReportedMetric>> ReportedBy(const store::Job& job,
                                                         const MetricQuery& query) override {
    return metrics_.Read(state_.files.FolderOf(job.id), job.sequence, query);
  }
  absl::StatusOr<std::vector<ReportedMetric>> MetricsOf(const store::Job& job,
                                                        const MetricQuery& query) override;
  absl::StatusOr<std::shared_ptr<OpenQuestion>> AskLaunchers(absl::string_view id,
                                                             const QuestionQuery& query) override;
  absl::StatusOr<JobStatus> Cancel(absl::string_view id) override;
  absl::Status Delete(absl::string_view id) override { return deletion_.Delete(id); }
  absl::StatusOr<LinesPage> LinesBefore(absl::string_view id, absl::string_view before,
                                        int limit) override {
    return follower_.LinesBefore(id, before, limit);
  }
  absl::StatusOr<FollowResult> Follow(absl::string_view id, absl::string_view cursor,
                                      base::Deadline deadline,
                                      const FollowFilter& filter) override {
    return follower_.Follow(id, cursor, deadline, filter);
  }
  absl::Status Cordon(absl::string_view compute, absl::string_view node,
                      absl::string_view reason) override {
    return AddCordon(state_, compute, node, reason);
  }
  absl::Status Uncordon(absl::string_view compute, absl::string_view node) override;
  absl::StatusOr<std::vector<health::NodeCheck>> CheckNode(absl::string_view compute,
                                                           absl::string_view node) override {
    return health_.CheckNow(compute, node);
  }
  absl::StatusOr<Subscription> OnNewsOf(absl::string_view id, std::function<void()> wake) override {
    return follower_.OnNewsOf(id, std::move(wake));
  }
  NodeList ListNodes() override { return service::ListNodes(state_, table_, leaving_); }
  absl::StatusOr<std::vector<file_server::ServerStatus>> FileServers() override;
  Monitoring Monitor(const MonitoringLimits& limits) override {
    return service::Monitor(state_, table_, leaving_, counters_, cluster_nodes_, limits);
  }
  absl::StatusOr<std::vector<Removal>> Prune(const Pruning& how) override {
    return pruner_.Prune(how);
  }
  absl::Status SetSecret(absl::string_view name, absl::string_view value) override {
    return secrets_.SetSecret(name, value);
  }
  absl::StatusOr<std::vector<SecretInfo>> ListSecrets() override {
    return Durable(secrets_.ListSecrets());
  }
  absl::StatusOr<std::vector<std::string>> DeleteSecret(absl::string_view name) override {
    return Durable(secrets_.DeleteSecret(name));
  }
  absl::StatusOr<int> RotateSecrets() override { return secrets_.RotateSecrets(); }
  absl::StatusOr<StorageGrant> GrantStorage(const StorageQuestion& question) override {
    return storage_access_.GrantStorage(question);
  }
  absl::StatusOr<SignedAddress> SignStorage(const StorageQuestion& question) override {
    return storage_access_.SignStorage(question);
  }
  absl::StatusOr<std::vector<store::RemovedFiles>> RemovedOf(absl::string_view id) override {
    return Durable(state_.store->RemovedOf(id));
  }
  absl::StatusOr<std::optional<StoredLogs>> StoredLogsOf(absl::string_view id) override;
  absl::StatusOr<RegisteredVersion> RegisterFromJob(ModelCreation creation, absl::string_view job,
                                                    absl::string_view path) override;
  absl::Status DeleteModel(const std::string& name, const std::string& version) override {
    return state_.models.Delete(name, version, [this](const std::string& digest) {
      return WhatIsInUse(state_, table_).models.contains(digest);
    });
  }
  std::vector<std::string> Problems() override;
  bool DiskIsFull() override;
  std::vector<AwayFolder> AwayFolders() override { return state_.folders.Away(); }

  absl::StatusOr<Acknowledgement> ReportEvents(absl::string_view allocation, int node,
                                               int64_t first,
                                               const std::vector<std::string>& lines) override {
    return launchers_.ReportEvents(allocation, node, first, lines);
  }
  absl::StatusOr<Go> MayGo(absl::string_view allocation, int node) override {
    return ToLauncher(launchers_.MayGo(allocation, node));
  }
  absl::StatusOr<Subscription> OnNewsOfAllocation(absl::string_view allocation, int node,
                                                  std::function<void()> wake) override {
    return ToLauncher(launchers_.OnNewsOfAllocation(allocation, node, std::move(wake)));
  }
  absl::StatusOr<SecretValues> SecretsForLauncher(absl::string_view allocation, int node) override;
  absl::StatusOr<JobRun> BeginRun(absl::string_view allocation, int node) override;
  bool MayTrack(const std::string& run) override { return job_runs_.MayTrack(run); }
  absl::StatusOr<std::optional<tracking::Run>> RunOf(const store::Job& job) override {
    return job_runs_.Find(job);
  }
  absl::Status CheckUnderWay(absl::string_view allocation) override {
    return ToLauncher(launchers_.CheckUnderWay(allocation));
  }
  std::vector<std::string> AllocationsUnderWay() override {
    return launchers_.AllocationsUnderWay();
  }
  absl::StatusOr<uint64_t> AppendOutput(absl::string_view allocation, int node, int rank,
                                        LogStream stream, uint64_t offset,
                                        absl::string_view bytes) override {
    return ToLauncher(launchers_.AppendOutput(allocation, node, rank, stream, offset, bytes));
  }
  absl::StatusOr<absl::Duration> TakeUsage(absl::string_view allocation, int node,
                                           std::vector<spec::UsageSample> samples,
                                           std::optional<absl::Time> sent) override {
    return ToLauncher(launchers_.TakeUsage(allocation, node, std::move(samples), sent));
  }
  absl::StatusOr<spec::Questions> QuestionsFor(absl::string_view allocation, int node) override {
    return ToLauncher(launchers_.QuestionsFor(allocation, node, questions_));
  }
  absl::Status TakeAnswer(absl::string_view allocation, int node, absl::string_view question,
                          int rank, absl::string_view json) override {
    return questions_.Take(allocation, node, question, rank, json);
  }
  absl::StatusOr<std::unique_ptr<IncomingFile>> ReceiveFile(absl::string_view allocation, int node,
                                                            absl::string_view path, uint64_t bytes,
                                                            absl::string_view question) override;
  absl::StatusOr<std::vector<absl::Status>> ReceiveFiles(absl::string_view allocation, int node,
                                                         const std::vector<http::BatchFile>& files,
                                                         absl::string_view question) override;
  absl::StatusOr<std::string> JobOfLauncher(absl::string_view allocation, int node) override {
    return ToLauncher(launchers_.JobOf(allocation, node));
  }
  absl::StatusOr<base::Deadline> DoFileWork(FileWork kind, const std::string& queue,
                                            std::function<void()> work) override;
  absl::Status CheckFolder(FileWork kind, const std::string& queue) override {
    return state_.folders.Check(FolderOf(kind, queue));
  }
  absl::Status AwaitFolder(FileWork kind, const std::string& queue) override {
    return state_.folders.Await(FolderOf(kind, queue));
  }
  bool ReadFilesOf(absl::string_view job, std::function<void()> read,
                   base::Deadline deadline) override {
    return ReadFiles(state_, job, std::move(read), deadline);
  }
  Snapshots& snapshots() override { return state_.snapshots; }
  const JobFiles& files() const override { return state_.files; }
  std::string RunningAllocationOf(absl::string_view job) override;
  RegisteredModels& models() override { return state_.models; }

 private:
  // Returns OK for results that a launcher sends at the end, or for the sake of a question that is
  // open; Aborted for others.
  absl::Status CheckAsked(absl::string_view allocation, int node, absl::string_view question);
  std::filesystem::path FolderOf(FileWork kind, const std::string& queue) const;
  // Returns what keeps the job's usage in memory, or null, and whether the job has its nodes.
  std::pair<std::shared_ptr<JobUsage>, bool> UsageInMemory(absl::string_view id);
  // Has removed, by a thread that nobody waits for, what an earlier service was receiving.
  void RemoveIncoming() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Loop();
  // Waits for the disk, so that what is told survives a loss of power.
  template <typename Many>
  absl::StatusOr<Many> Durable(absl::StatusOr<Many> answer) ABSL_LOCKS_EXCLUDED(service_lock) {
    if (answer.ok() && !IsEmpty(*answer)) TUTTI_RETURN_IF_ERROR(AwaitDurable(state_));
    return answer;
  }
  template <typename Item>
  static bool IsEmpty(const std::vector<Item>& items) {
    return items.empty();
  }
  static bool IsEmpty(const Children& children) { return children.list.empty(); }
  static bool IsEmpty(const TrialPage& page) { return page.trials.empty(); }
  absl::StatusOr<EventPage> Durable(absl::StatusOr<EventPage> page)
      ABSL_LOCKS_EXCLUDED(service_lock) {
    const bool any = page.ok() && !page->events.empty();
    if (any) TUTTI_RETURN_IF_ERROR(AwaitDurable(state_, page->events.back().sequence));
    return page;
  }
  absl::StatusOr<JobStatus> Durable(absl::StatusOr<JobStatus> job)
      ABSL_LOCKS_EXCLUDED(service_lock) {
    if (job.ok()) TUTTI_RETURN_IF_ERROR(AwaitDurable(state_, job->record.last.sequence));
    return job;
  }
  // Tells that an allocation is over once the disk has it: its launcher ends then.
  absl::Status ToLauncher(const absl::Status& answer) ABSL_LOCKS_EXCLUDED(service_lock) {
    if (absl::IsAborted(answer)) TUTTI_RETURN_IF_ERROR(AwaitDurable(state_));
    return answer;
  }
  template <typename Value>
  absl::StatusOr<Value> ToLauncher(absl::StatusOr<Value> answer) ABSL_LOCKS_EXCLUDED(service_lock) {
    if (!answer.ok()) return ToLauncher(answer.status());
    return answer;
  }
  absl::StatusOr<JobStatus> CancelNow(absl::string_view id) ABSL_LOCKS_EXCLUDED(service_lock);
  // Has each engine looked at that is not being looked at. False if there was none.
  bool ObserveEngines() ABSL_LOCKS_EXCLUDED(service_lock);
  // Takes in what an engine has said, on the thread that has called it.
  void TakeIn(const std::string& compute, const EngineCalls::States& states)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void TakeSteps() ABSL_LOCKS_EXCLUDED(service_lock);
  void LookAtTheDisk() ABSL_LOCKS_EXCLUDED(service_lock);

  // Each is made of those above it.
  SharedState state_;
  JobTable table_{state_};
  Insertions insertions_{state_};
  JobViews views_{state_, table_};
  Secrets secrets_{state_, table_};
  StorageAccess storage_access_{state_, secrets_};
  LogStorage log_storage_{state_, secrets_};
  JobRuns job_runs_{state_};
  MetricsOfJobs metrics_;
  JobDeletion deletion_{state_, table_};
  Pruner pruner_{state_, table_, secrets_};
  LeavingAllocations leaving_{state_, table_};
  EngineCalls engine_calls_{state_, table_, leaving_};
  NodeHealth health_{state_};
  JobOutput output_{state_, table_};
  JobProgress progress_{state_, table_, leaving_, output_, health_};
  LocalScheduler scheduler_{state_, table_, leaving_, progress_, health_};
  DataHolders data_holders_{state_};
  ClusterQueue cluster_queue_{state_, table_, engine_calls_, data_holders_};
  ClusterNodes cluster_nodes_{state_};
  Observer observer_{state_, table_, leaving_, cluster_queue_};
  ObservationSchedule observations_{state_, leaving_};
  FlowRunner flows_{state_, table_};
  PastTrials past_trials_{state_};
  ChildViews children_{state_, table_, views_};
  Admission admission_{state_, table_, views_, insertions_, scheduler_, engine_calls_, secrets_};
  LauncherReports launchers_{state_, table_, cluster_queue_};
  OpenQuestions questions_;
  Follower follower_{state_, table_, insertions_};
  EventLogger event_logger_;
  JobCounters counters_;
  bool reserve_is_whole_ = false;  // as far as is known; of the tick
  bool owes_steps_ = false;        // the store could not be synced; of the tick
  bool runs_ = false;              // by itself, with threads; set before the loop begins
  std::thread loop_;
};

}  // namespace tutti::service
