#include "platform/service/service_core.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/service/models/job_model.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/stored_logs/log_place.h"
#include "platform/service/usage/usage_problems.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kIdle = absl::Seconds(5);
constexpr absl::Duration kPatienceAtTheEnd = absl::Seconds(2);
constexpr absl::Duration kLong = absl::Seconds(30);  // for a call on an engine, or work on files

// Returns the processor time of this thread, which other programs that want the processor do not
// change.
absl::Duration ProcessorTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// Returns a line for each piece of work that has taken longer than `age`.
std::vector<std::string> Hanging(const SharedState& state, absl::Duration age) {
  std::vector<std::string> lines;
  for (const auto& [compute, since] : state.engine_work.OlderThan(age)) {
    lines.push_back(absl::StrCat("compute ", compute, " has not answered for ",
                                 absl::FormatDuration(absl::Trunc(since, absl::Seconds(1))),
                                 ": is its folder on a server that is away?"));
  }
  // They map each job or mount to its oldest work.
  std::map<std::string, absl::Duration> jobs, mounts;
  for (const base::WorkQueues* const work :
       {&state.folder_work, &state.plan_work, &state.output_work, &state.read_work}) {
    for (const auto& [queue, since] : work->OlderThan(age)) {
      const bool is_of_mounts = absl::StartsWith(queue, "/");  // PlanPlace
      absl::Duration& oldest = is_of_mounts ? mounts[queue.substr(0, queue.rfind('/'))]
                                            : jobs[queue.substr(0, queue.find('/'))];
      oldest = std::max(oldest, since);
    }
  }
  for (const auto& [job, since] : jobs) {
    lines.push_back(absl::StrCat("work on files of job ", job, " has gone on for ",
                                 absl::FormatDuration(absl::Trunc(since, absl::Seconds(1)))));
  }
  for (const auto& [mount, since] : mounts) {
    lines.push_back(absl::StrCat("what steps of pipelines read from ", mount, " has gone on for ",
                                 absl::FormatDuration(absl::Trunc(since, absl::Seconds(1)))));
  }
  if (!state.listing_work.OlderThan(age).empty()) {
    lines.emplace_back("the folder of jobs does not answer: is it on a server that is away?");
  }
  if (!state.snapshot_work.OlderThan(age).empty()) {
    lines.emplace_back("the folder of snapshots does not answer: is it on a server that is away?");
  }
  return lines;
}

base::WorkQueues& WorkOf(SharedState& state, Service::FileWork kind) {
  switch (kind) {
    case Service::FileWork::kOutput:
      return state.output_work;
    case Service::FileWork::kReading:
      return state.read_work;
    case Service::FileWork::kSecrets:
      return state.secret_work;
    case Service::FileWork::kSnapshots:
      break;
  }
  return state.snapshot_work;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(ServiceOptions options, store::Store* store,
                                                       Engines engines, const base::Clock* clock) {
  auto service =
      std::make_unique<ServiceCore>(std::move(options), store, std::move(engines), clock);
  TUTTI_RETURN_IF_ERROR(service->Rebuild());
  return service;
}

void EventLogger::OnEvent(const store::Job& job, const store::Event& event, const EventDetail&) {
  spdlog::info("job {}: {}: {}", job.id, std::string(Name(event.state)), event.reason);
}

ServiceCore::ServiceCore(ServiceOptions options, store::Store* store, Engines engines,
                         const base::Clock* clock)
    : state_(std::move(options), store, std::move(engines), clock) {
  table_.AddListener(&event_logger_);
  table_.AddListener(&counters_);
  table_.AddListener(&follower_);
  table_.AddListener(&log_storage_);
  table_.AddListener(&data_holders_);
  table_.AddListener(&job_runs_);
  for (EventListener* const listener : state_.options.listeners) table_.AddListener(listener);
}

ServiceCore::~ServiceCore() {
  Stop();
  // Tasks know the members below `state_`.
  for (base::WorkQueues* const work : state_.all_work) work->Join();
}

absl::Status ServiceCore::Rebuild() {
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records, state_.store->NonTerminalJobs());
  StateLock lock(state_);
  RemoveIncoming();
  for (store::JobRecord& record : records) {
    TUTTI_ASSIGN_OR_RETURN(LiveJob* const job, table_.Rebuild(std::move(record)));
    TUTTI_RETURN_IF_ERROR(flows_.Rebuild(*job));
  }
  TUTTI_RETURN_IF_ERROR(log_storage_.Rebuild());
  job_runs_.Rebuild(table_);
  TUTTI_ASSIGN_OR_RETURN(state_.nodes, state_.engines.local->ListNodes());
  return ReadCordons(state_);
}

void ServiceCore::RemoveIncoming() {
  constexpr char kGone[] = ".gone-";
  const std::filesystem::path& home = state_.options.directory;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(home, error)) {
    if (absl::StartsWith(entry.path().filename().native(), kGone)) {
      state_.janitor.Remove(entry.path());  // which the one before did not get to remove
    }
  }
  // Where versions before this one received.
  state_.problems.Note("what an earlier service was receiving stays",
                       state_.janitor.RenameAndRemove(home / "incoming", kGone));
}

void ServiceCore::Run() {
  runs_ = true;
  for (base::WorkQueues* const work : state_.all_work) work->Start();
  state_.folders.Run();
  loop_ = std::thread([this] { Loop(); });
  deletion_.Resume();
  state_.snapshot_work.Do("", [this] { state_.snapshots.RemoveEarlier(state_.janitor); });
  state_.snapshot_work.Do("", [this] { state_.models.RemoveEarlier(); });
  past_trials_.Read();
  data_holders_.ReadPast();
  job_runs_.EndPast();
  pruner_.Run();
}

void ServiceCore::Stop() {
  {
    StateLock lock(state_);
    state_.stopping = true;
    state_.ending = true;
    state_.wake.SignalAll();
    state_.changed.SignalAll();
    follower_.WakeAll();
  }
  if (state_.options.node_checker != nullptr) state_.options.node_checker->Abandon();
  if (loop_.joinable()) loop_.join();
  pruner_.Stop();
  state_.folders.Stop();
  const base::Deadline deadline = base::Deadline::After(kPatienceAtTheEnd);
  bool ended = true;
  for (base::WorkQueues* const work : state_.all_work) ended &= work->Stop(deadline);
  if (!ended) {
    spdlog::warn("what is under way when the service ends does not end: {}",
                 absl::StrJoin(Hanging(state_, absl::ZeroDuration()), "; "));
  }
}

void ServiceCore::Loop() {
  while (true) {
    Tick();
    StateLock lock(state_);
    const bool busy =
        !table_.live().empty() || !leaving_.all().empty() || !state_.local_engine_observed;
    if (!state_.loop_has_work && !state_.stopping) {
      state_.wake.WaitWithTimeout(&state_.mutex, busy ? observations_.Interval() : kIdle);
    }
    if (state_.stopping) return;
  }
}

void ServiceCore::Tick() {
  absl::MutexLock one_at_a_time(&state_.tick_mutex);
  LookAtTheDisk();
  log_storage_.BringDue();
  job_runs_.EndDue();
  job_runs_.LogDue();
  bool observe = false, anything_else = false;
  {
    StateLock lock(state_);
    anything_else = state_.loop_has_work;
    state_.loop_has_work = false;
    observe = observations_.IsDue();
    if (observe) observations_.NoteObservation();
  }
  anything_else |= std::exchange(owes_steps_, false);
  if (!engine_calls_.PerformHeld()) {
    owes_steps_ = true;
    return;
  }
  // What an engine says wakes the loop. One that hangs does not, so that no step waits for it.
  if (observe && ObserveEngines() && runs_ && !anything_else) return;
  TakeSteps();
}

// Looks whether the disk is full; while it is, no job is told to begin. What was given up of the
// reserve is taken again once there is room.
void ServiceCore::LookAtTheDisk() {
  const DiskRoom room = state_.disk.Look();
  base::DiskReserve* const reserve = state_.options.reserve;
  if (room.status.ok() && reserve != nullptr && !reserve_is_whole_) {
    reserve_is_whole_ = room.least > 0 && reserve->Restore(room.least);
  }
  if (!room.status.ok()) reserve_is_whole_ = false;
  const uint64_t reserved = reserve == nullptr ? 0 : reserve->bytes();
  StateLock lock(state_);
  state_.disk_is_full = std::string(room.status.message());
  state_.disk_room = room;
  state_.disk_reserve = reserved;
}

void ServiceCore::TakeSteps() {
  const absl::Duration began = ProcessorTime();
  Effects effects;
  {
    StateLock lock(state_);
    progress_.AdvanceAll(effects);
    flows_.AdvanceAll(effects);
    if (state_.local_engine_observed) scheduler_.Schedule(effects);
    cluster_queue_.HandOver(effects);
    health_.Look(effects);
    observations_.NoteWork(ProcessorTime() - began);
    effects.after = state_.store->LastDeferred();
  }
  engine_calls_.Perform(std::move(effects));
}

bool ServiceCore::ObserveEngines() {
  bool any = false;
  const auto observe = [&](const std::string& compute) {
    any |= engine_calls_.Observe(
        compute, [this, compute](const EngineCalls::States& states) { TakeIn(compute, states); });
  };
  observe("local");
  for (const auto& [name, engine] : state_.engines.clusters) observe(name);
  return any;
}

void ServiceCore::TakeIn(const std::string& compute, const EngineCalls::States& states) {
  if (engine_calls_.holds()) return;  // it says that again
  Effects effects;
  {
    StateLock lock(state_);
    state_.problems.Note(compute == "local" ? "the engine cannot be observed"
                                            : absl::StrCat("compute ", compute, " cannot be used"),
                         states.status());
    if (states.ok()) observer_.Observe(compute, *states, effects);
    effects.after = state_.store->LastDeferred();
    state_.Wake();
  }
  engine_calls_.Perform(std::move(effects));
}

absl::StatusOr<JobStatus> ServiceCore::Cancel(absl::string_view id) {
  return Durable(CancelNow(id));
}

absl::StatusOr<JobStatus> ServiceCore::CancelNow(absl::string_view id) {
  {
    StateLock lock(state_);
    insertions_.Await(id);
    if (LiveJob* const job = table_.Find(id)) {
      TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, table_.Cancel(*job, kCancelAsked));
      return views_.StatusOf(record);
    }
  }
  return views_.Get(id);
}

absl::StatusOr<JobUsageView> ServiceCore::UsageOf(absl::string_view id, const UsageQuery& query) {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus known, views_.Get(id));
  const auto [usage, is_placed] = UsageInMemory(id);
  if (usage != nullptr) {
    const absl::Time now = state_.clock->Now();
    auto view = usage->View(query, now);
    if (view.ok() && !is_placed) view->End();
    if (!view.ok() || !view->live) return view;
    // Of one rank: where all report, all wait for the slowest.
    const auto reported = ReportedBy(
        known.record.job, {.rank = query.rank.value_or(0), .newest = MetricSeries::kMostNewest});
    if (!reported.ok()) return view;
    auto waits = DataWait(*reported, view->gpus_busy, now);
    if (waits) view->problems.push_back(*std::move(waits));
    return view;
  }
  return JobUsage::Read(state_.files.FolderOf(id) / kUsageFolder, query);
}

std::optional<uint64_t> ServiceCore::PeakMemoryOf(absl::string_view id) {
  const std::shared_ptr<JobUsage> usage = UsageInMemory(id).first;
  return usage != nullptr ? usage->PeakMemory()
                          : JobUsage::ReadPeakMemory(state_.files.FolderOf(id) / kUsageFolder);
}

std::pair<std::shared_ptr<JobUsage>, bool> ServiceCore::UsageInMemory(absl::string_view id) {
  StateLock lock(state_);
  const LiveJob* const job = table_.Find(id);
  if (job != nullptr && job->placed != nullptr) return {job->placed->usage, true};
  const auto closing = state_.closing_usage.find(std::string(id));
  return {closing != state_.closing_usage.end() ? closing->second : nullptr, false};
}

absl::StatusOr<std::vector<ReportedMetric>> ServiceCore::MetricsOf(const store::Job& job,
                                                                   const MetricQuery& query) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<ReportedMetric> metrics, ReportedBy(job, query));
  if (query.rank.value_or(0) == 0) TUTTI_RETURN_IF_ERROR(job_runs_.AddTracked(job, query, metrics));
  return metrics;
}

absl::StatusOr<std::shared_ptr<OpenQuestion>> ServiceCore::AskLaunchers(
    absl::string_view id, const QuestionQuery& query) {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus known, views_.Get(id));
  std::string allocation;
  std::vector<AskedNode> nodes;
  absl::Duration unheard;
  {
    StateLock lock(state_);
    const LiveJob* const job = table_.Find(id);
    if (job != nullptr && job->flow != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "job ", id, " has no processes of its own: ask for those of one of its children"));
    }
    if (job == nullptr || job->placed == nullptr ||
        job->record.last.state != store::JobState::kRunning) {
      return absl::FailedPreconditionError(absl::StrCat(
          "job ", id, " does not run: it is ",
          store::Name(job == nullptr ? known.record.last.state : job->record.last.state)));
    }
    allocation = job->placed->placement.allocation;
    nodes = NodesToAsk(*job->placed, query);
    unheard = UnheardAfter(state_);
  }
  const bool has_rank = std::any_of(nodes.begin(), nodes.end(),
                                    [](const AskedNode& node) { return !node.ranks.empty(); });
  if (!has_rank) return absl::NotFoundError(absl::StrCat("job ", id, " has no rank ", *query.rank));
  return questions_.Ask(allocation, query, std::move(nodes), unheard,
                        [this, job = known.record.job.id, allocation](
                            const std::set<std::string>& paths, absl::Duration age) {
                          if (!state_.folders.Await(state_.files.FolderOf(job)).ok()) return;
                          state_.files.KeepOfRunning(job, allocation, paths, age);
                        });
}

absl::Status ServiceCore::CheckAsked(absl::string_view allocation, int node,
                                     absl::string_view question) {
  if (question.empty()) return absl::OkStatus();
  bool takes_some = false;  // before what the allocation has sent so far is removed
  {
    StateLock lock(state_);
    const LiveJob* const job = table_.FindPlaced(allocation);
    takes_some = job != nullptr && job->placed->output != PlacedJob::Output::kClosing &&
                 job->placed->output != PlacedJob::Output::kClosed;
  }
  if (takes_some && questions_.IsAsked(allocation, node, question)) return absl::OkStatus();
  return absl::AbortedError("nobody waits for these results any more");
}

absl::StatusOr<std::unique_ptr<IncomingFile>> ServiceCore::ReceiveFile(absl::string_view allocation,
                                                                       int node,
                                                                       absl::string_view path,
                                                                       uint64_t bytes,
                                                                       absl::string_view question) {
  TUTTI_RETURN_IF_ERROR(CheckAsked(allocation, node, question));
  auto file = ToLauncher(launchers_.ReceiveFile(allocation, node, path, bytes, !question.empty()));
  if (file.ok()) {
    (*file)->BeforeCommit(
        [this, allocation = std::string(allocation), node, question = std::string(question)] {
          return CheckAsked(allocation, node, question);
        });
  }
  return file;
}

absl::StatusOr<std::vector<absl::Status>> ServiceCore::ReceiveFiles(
    absl::string_view allocation, int node, const std::vector<http::BatchFile>& files,
    absl::string_view question) {
  TUTTI_RETURN_IF_ERROR(CheckAsked(allocation, node, question));
  return ToLauncher(launchers_.ReceiveFiles(allocation, node, files, !question.empty()));
}

std::string ServiceCore::RunningAllocationOf(absl::string_view job) {
  StateLock lock(state_);
  const LiveJob* const live = table_.Find(job);
  return live == nullptr || live->placed == nullptr ? "" : live->placed->placement.allocation;
}

std::filesystem::path ServiceCore::FolderOf(FileWork kind, const std::string& queue) const {
  switch (kind) {
    case FileWork::kSecrets:
      return secrets_.key_file();
    case FileWork::kSnapshots:
      return state_.snapshots.directory();
    case FileWork::kOutput:
    case FileWork::kReading:
      break;
  }
  return state_.files.FolderOf(queue.substr(0, queue.find('/')));  // a job has several queues
}

absl::StatusOr<base::Deadline> ServiceCore::DoFileWork(FileWork kind, const std::string& queue,
                                                       std::function<void()> work) {
  TUTTI_RETURN_IF_ERROR(CheckFolder(kind, queue));
  base::WorkQueues& queues = WorkOf(state_, kind);
  const absl::Duration patience = state_.options.patience_with_folders;
  if (queues.Hangs(queue, patience)) {
    return absl::UnavailableError("the service's folder for this does not answer: try again later");
  }
  queues.Do(queue, std::move(work));
  return base::Deadline::After(patience);
}

absl::StatusOr<RegisteredVersion> ServiceCore::RegisterFromJob(ModelCreation creation,
                                                               absl::string_view job,
                                                               absl::string_view path) {
  TUTTI_ASSIGN_OR_RETURN(const JobStatus status, GetJob(job));
  const store::Job& of = status.record.job;
  if (!store::IsEnd(status.record.last.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", of.id, " has not ended: its results are not complete"));
  }
  return RegisterResults(state_.files, state_.models, std::move(creation), of, path);
}

absl::StatusOr<JobRun> ServiceCore::BeginRun(absl::string_view allocation, int node) {
  TUTTI_ASSIGN_OR_RETURN(const store::Job job,
                         ToLauncher(launchers_.JobToTrack(allocation, node, job_runs_)));
  auto run = job_runs_.Begin(job);
  if (run.ok() || absl::IsAborted(run.status()) || absl::IsNotFound(run.status())) return run;
  // A launcher does not wait for it: what cannot be made now is done without.
  return absl::FailedPreconditionError(run.status().message());
}

absl::StatusOr<SecretValues> ServiceCore::SecretsForLauncher(absl::string_view allocation,
                                                             int node) {
  TUTTI_ASSIGN_OR_RETURN(const std::set<std::string> names,
                         launchers_.SecretNamesFor(allocation, node));
  TUTTI_ASSIGN_OR_RETURN(SecretValues values, secrets_.ValuesOf(names));
  spdlog::info("allocation {}: node {} is given {}", std::string(allocation), node,
               names.empty() ? "no secrets" : "secrets " + absl::StrJoin(names, ", "));
  return values;
}

bool ServiceCore::DiskIsFull() {
  StateLock lock(state_);
  return !state_.disk_is_full.empty();
}

absl::Status ServiceCore::Uncordon(absl::string_view compute, absl::string_view node) {
  TUTTI_RETURN_IF_ERROR(RemoveCordon(state_, compute, node));
  if (compute != "local") return absl::OkStatus();
  StateLock lock(state_);
  health_.Accept(node);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<StoredLogs>> ServiceCore::StoredLogsOf(absl::string_view id) {
  TUTTI_ASSIGN_OR_RETURN(const std::optional<store::LogsNote> note, state_.store->LogsNoteOf(id));
  if (!note) return std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(const JobStatus job, views_.Get(id));
  const auto& place = job.record.job.spec.logs_place;
  if (!place) return std::nullopt;
  return StoredLogs{ShownLogsPlace(*place, id), *note};
}

absl::StatusOr<std::vector<file_server::ServerStatus>> ServiceCore::FileServers() {
  auto servers = file_server::ReadServerStatuses(state_.options.directory);
  // What is wrong is a file of the service, and not the question.
  if (!absl::IsInvalidArgument(servers.status())) return servers;
  return absl::FailedPreconditionError(servers.status().message());
}

std::vector<std::string> ServiceCore::Problems() {
  std::vector<std::string> problems;
  {
    StateLock lock(state_);
    if (!state_.disk_is_full.empty()) problems.push_back(state_.disk_is_full);
  }
  for (const AwayFolder& folder : state_.folders.Away()) problems.push_back(ShownAway(folder));
  for (std::string& line : Hanging(state_, kLong)) problems.push_back(std::move(line));
  for (std::string& line : state_.janitor.Problems()) problems.push_back(std::move(line));
  for (std::string& line : secrets_.Problems()) problems.push_back(std::move(line));
  StateLock lock(state_);
  for (const auto& [node, cordon] : state_.cordons) {
    if (cordon.author == store::CordonAuthor::kUser) continue;
    problems.push_back(absl::StrCat("node ", node, " is ill and gets no jobs: ", cordon.reason,
                                    " (tutti node check ", node, ")"));
  }
  for (const auto& [where, cordon] : state_.cluster_cordons.all()) {
    problems.push_back(
        absl::StrCat("node ", where.second, " of compute ", where.first,
                     " is ill, and jobs avoid it for some minutes: ", cordon.reason));
  }
  for (std::string& line : state_.problems.Lines()) problems.push_back(std::move(line));
  return problems;
}

}  // namespace tutti::service
