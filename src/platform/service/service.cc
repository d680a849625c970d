#include "platform/service/service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/container/image.h"
#include "platform/launch/remote_input.h"
#include "platform/service/free_port.h"
#include "platform/service/service_core.h"
#include "spec/job_file.h"

namespace tutti::service {
namespace {

constexpr int kNameAttempts = 8;
// Kept free for what accepted jobs have yet to write: their events and the ends of their logs.
constexpr std::uintmax_t kReservedBytes = 4 << 20;
constexpr size_t kTokenBytes = 32;
constexpr size_t kLongestId = 200;  // of a child: it becomes a folder

// "Hello World" -> "hello-world": what people recognise a job by, safe as a file name.
std::string Slug(absl::string_view text) {
  std::string slug;
  for (const char c : text.substr(0, 40)) {
    if (absl::ascii_isalnum(c)) {
      slug += absl::ascii_tolower(c);
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "job" : slug;
}

absl::Status CheckSpace(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || space.available >= kReservedBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of ", directory.native(), " is full: ", space.available >> 10,
                   " kB of space are left, and no job is taken below ", kReservedBytes >> 10,
                   " kB; delete files or jobs that have ended"));
}

// That one of its jobs takes at once of this machine's.
int MostNodes(const spec::JobSpec& job) {
  int most = job.compute == "local" ? job.instance_count : 0;
  for (const spec::Step& step : job.steps) most = std::max(most, MostNodes(step.job));
  return most;
}

// The longest name of a job below it, which follows its own: ".train.trial-10000".
size_t LongestChildName(const spec::JobSpec& job) {
  size_t longest = job.sweep ? std::strlen(".trial-10000") : 0;
  for (const spec::Step& step : job.steps) {
    longest = std::max(longest, 1 + step.name.size() + LongestChildName(step.job));
  }
  return longest;
}

ServiceOptions WithDefaults(ServiceOptions options) {
  if (!options.find_port) options.find_port = FindFreePort;
  if (!options.random_hex) options.random_hex = base::RandomHex;
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(ServiceOptions options, store::Store* store,
                                                       Engines engines, const base::Clock* clock) {
  auto service =
      std::make_unique<ServiceCore>(std::move(options), store, std::move(engines), clock);
  TUTTI_RETURN_IF_ERROR(service->Rebuild());
  return service;
}

ServiceCore::ServiceCore(ServiceOptions options, store::Store* store, Engines engines,
                         const base::Clock* clock)
    : options_(WithDefaults(std::move(options))),
      store_(store),
      engines_(std::move(engines)),
      clock_(clock),
      snapshots_(options_.directory / "snapshots", options_.directory / "incoming"),
      files_(options_.directory / "jobs", options_.directory / "incoming") {}

ServiceCore::~ServiceCore() { Stop(); }

absl::Status ServiceCore::Rebuild() {
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(options_.directory / "incoming"));
  TUTTI_RETURN_IF_ERROR(RestoreInterruptedDeletes());
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records, store_->NonTerminalJobs());
  absl::MutexLock lock(&mutex_);
  for (store::JobRecord& record : records) TUTTI_RETURN_IF_ERROR(RebuildJob(std::move(record)));
  TUTTI_ASSIGN_OR_RETURN(nodes_, engines_.local->ListNodes());
  return absl::OkStatus();
}

absl::Status ServiceCore::RestoreInterruptedDeletes() {
  for (const std::string& job : files_.Hidden()) {
    const bool kept = store_->GetJob(job).ok();
    TUTTI_RETURN_IF_ERROR(kept ? files_.Restore(job) : files_.Remove(job));
  }
  return absl::OkStatus();
}

absl::Status ServiceCore::RebuildJob(store::JobRecord record) {
  auto job = std::make_unique<LiveJob>();
  Detail detail = DetailFromJson(record.last.detail);
  job->record = std::move(record);
  job->cause = detail.cause;
  if (detail.placement) {
    TUTTI_ASSIGN_OR_RETURN(job->placed,
                           RebuildGang(job->record.job.id, *std::move(detail.placement)));
    job->placed->started = job->record.last.state != store::JobState::kProvisioning;
  }
  const std::string id = job->record.job.id;
  if (job->placed != nullptr) placed_.insert(job.get());
  TUTTI_RETURN_IF_ERROR(RebuildFlow(*job));
  if (job->flow != nullptr) flows_.insert(job.get());
  live_[id] = std::move(job);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PlacedJob>> ServiceCore::RebuildGang(const std::string& job_id,
                                                                    Placement placement) {
  const absl::Time now = clock_->Now();
  auto job = std::make_unique<PlacedJob>(std::move(placement));
  job->nodes.assign(job->placement.nodes.size(), LiveNode{.last_word = now});
  job->started_at = now;
  for (int node = 0; node < job->gang.size(); ++node) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           store_->LauncherEvents(job->placement.allocation, node));
    for (const std::string& line : lines) job->gang.Apply(node, line);
  }
  TUTTI_ASSIGN_OR_RETURN(
      job->logs, JobLogs::Open(files_.FolderOf(job_id) / "logs", clock_, options_.log_limit));
  return job;
}

void ServiceCore::Wake() {
  dirty_ = true;
  wake_.Signal();
}

absl::Status ServiceCore::Append(LiveJob& job, const Step& step) {
  Detail detail{.cause = step.cause, .failures = step.failures};
  if (job.placed != nullptr) detail.placement = job.placed->placement;
  TUTTI_ASSIGN_OR_RETURN(store::Event event,
                         store_->AppendEvent(job.record.job.id, job.record.last.sequence,
                                             {.time = clock_->Now(),
                                              .state = step.state,
                                              .reason = step.reason,
                                              .detail = ToJson(detail)}));
  spdlog::info("job {}: {}: {}", job.record.job.id, std::string(Name(step.state)), step.reason);
  if (step.state == store::JobState::kRunning && !job.record.started) {
    job.record.started = event.time;
  }
  job.record.last = std::move(event);
  job.cause = step.cause;
  job.bell->Ring();
  changed_.SignalAll();
  return absl::OkStatus();
}

// Each job of the tree gets the snapshot of its code.
absl::Status ServiceCore::AssignSnapshots(const std::map<std::string, std::string>& sent,
                                          spec::JobSpec& job, std::string& snapshot) {
  if (const auto found = sent.find(job.code); snapshot.empty() && found != sent.end()) {
    snapshot = found->second;
  }
  if (!snapshot.empty()) {
    TUTTI_RETURN_IF_ERROR(snapshots_.Find(snapshot).status());
  } else if (!job.code.empty()) {
    return absl::InvalidArgumentError(
        "the job has code, but its snapshot was not sent: PUT /v1/snapshots/… first");
  }
  for (spec::Step& step : job.steps) {
    TUTTI_RETURN_IF_ERROR(AssignSnapshots(sent, step.job, step.snapshot));
  }
  return absl::OkStatus();
}

absl::StatusOr<store::Job> ServiceCore::ToJob(const Submission& submission) {
  if (!submission.base_directory.is_absolute()) {
    return absl::InvalidArgumentError("base_directory must be an absolute path");
  }
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options_.directory));
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult file, spec::ReadJobFile(submission.text, submission.file,
                                                                  submission.base_directory, site));
  if (const absl::Status paths = spec::CheckPaths(file.spec); !paths.ok()) {
    return absl::InvalidArgumentError(paths.message());
  }
  TUTTI_RETURN_IF_ERROR(container::CheckCanRun(file.spec));
  TUTTI_RETURN_IF_ERROR(launch::CheckRemoteInputs(file.spec));
  std::string snapshot = submission.snapshot;
  TUTTI_RETURN_IF_ERROR(AssignSnapshots(submission.snapshots, file.spec, snapshot));
  return store::Job{.created = clock_->Now(),
                    .spec = std::move(file.spec),
                    .file_text = submission.text,
                    .snapshot = std::move(snapshot),
                    .job_token = options_.random_hex(kTokenBytes),
                    .warnings = std::move(file.warnings)};
}

absl::StatusOr<JobStatus> ServiceCore::Submit(const Submission& submission) {
  TUTTI_RETURN_IF_ERROR(CheckSpace(options_.directory));
  TUTTI_ASSIGN_OR_RETURN(store::Job job, ToJob(submission));
  const bool named = !job.spec.name.empty();
  const std::string slug =
      Slug(job.spec.display_name.empty() ? job.spec.experiment_name : job.spec.display_name);
  for (int attempt = 0;; ++attempt) {
    job.id = named ? job.spec.name : absl::StrCat(slug, "-", options_.random_hex(3));
    if (job.id.size() + LongestChildName(job.spec) > kLongestId) {
      return absl::InvalidArgumentError(
          absl::StrCat(job.spec.file_name,
                       ": the names of the job and of its steps in each other have more than ",
                       kLongestId, " characters"));
    }
    auto status = Insert(job, named);
    if (named || !absl::IsAlreadyExists(status.status()) || attempt == kNameAttempts) {
      return status;
    }
  }
}

absl::StatusOr<JobStatus> ServiceCore::Insert(const store::Job& job, bool named) {
  TUTTI_RETURN_IF_ERROR(BeginInsert(job));
  // Not under the lock: those who submit at the same time share one sync of the disk.
  auto record = store_->InsertJob(
      job, {.time = job.created, .state = store::JobState::kQueued, .reason = "submitted"});
  absl::MutexLock lock(&mutex_);
  inserting_.erase(job.id);
  changed_.SignalAll();
  if (named && absl::IsAlreadyExists(record.status())) {
    return absl::AlreadyExistsError(absl::StrCat("there is a job named \"", job.id,
                                                 "\" already: change \"name\", or leave it out"));
  }
  TUTTI_RETURN_IF_ERROR(record.status());
  auto live = std::make_unique<LiveJob>();
  live->record = *record;
  TUTTI_RETURN_IF_ERROR(RebuildFlow(*live));
  if (live->flow != nullptr) flows_.insert(live.get());
  live_[job.id] = std::move(live);
  spdlog::info("job {}: Queued: submitted", job.id);
  WakeForNewJob();
  return StatusOf(*record);
}

absl::Status ServiceCore::BeginInsert(const store::Job& job) {
  absl::MutexLock lock(&mutex_);
  if (EngineOf(job.spec.compute) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.spec.file_name, ": compute \"", job.spec.compute,
                     "\" is in site.yml, but was not when the service started: restart it"));
  }
  const int nodes = static_cast<int>(nodes_.size());
  if (const int most = MostNodes(job.spec); most > nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.spec.file_name, ": instance_count is ", most, ", but the cluster has ",
                     nodes, nodes == 1 ? " node" : " nodes", ": the job could never start"));
  }
  if (!inserting_.insert(job.id).second) {
    return absl::AlreadyExistsError(absl::StrCat("there is a job \"", job.id, "\" already"));
  }
  return absl::OkStatus();
}

// One who names a job that is just being inserted waits until it is known what became of it.
void ServiceCore::AwaitInsert(absl::string_view id) {
  while (inserting_.contains(id)) changed_.Wait(&mutex_);
}

JobStatus ServiceCore::StatusOf(const store::JobRecord& record) const {
  JobStatus status{.record = record, .reason = record.last.reason};
  Detail detail = DetailFromJson(record.last.detail);
  status.failures = std::move(detail.failures);
  if (detail.placement) {
    for (const PlacedNode& node : detail.placement->nodes) status.nodes.push_back(node.name);
  }
  const auto live = live_.find(record.job.id);
  if (live != live_.end() && record.last.state == store::JobState::kQueued) {
    if (!live->second->waits_for.empty()) status.reason = live->second->waits_for;
    status.expected_start = live->second->expected_start;
  }
  return status;
}

absl::StatusOr<JobStatus> ServiceCore::GetJob(absl::string_view id) {
  absl::MutexLock lock(&mutex_);
  if (const auto live = live_.find(id); live != live_.end()) return StatusOf(live->second->record);
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(id));
  return StatusOf(record);
}

absl::StatusOr<std::vector<store::Event>> ServiceCore::EventsOf(absl::string_view id) {
  return store_->EventsOf(id);
}

absl::StatusOr<std::vector<JobStatus>> ServiceCore::ListJobs(const store::JobFilter& filter) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> records, store_->ListJobs(filter));
  absl::MutexLock lock(&mutex_);
  std::vector<JobStatus> jobs;
  jobs.reserve(records.size());
  for (const store::JobRecord& record : records) jobs.push_back(StatusOf(record));
  return jobs;
}

absl::StatusOr<JobStatus> ServiceCore::Cancel(absl::string_view id) {
  absl::MutexLock lock(&mutex_);
  AwaitInsert(id);
  const auto found = live_.find(id);
  if (found == live_.end()) {
    TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(id));
    return StatusOf(record);
  }
  return CancelLive(*found->second, kCancelAsked);
}

absl::StatusOr<JobStatus> ServiceCore::CancelLive(LiveJob& job, const std::string& why) {
  if (job.placed == nullptr && job.flow == nullptr) {
    const bool asked = why == kCancelAsked;
    TUTTI_RETURN_IF_ERROR(
        Append(job, {store::JobState::kCanceled, asked ? "canceled before it started" : why,
                     Cause::kCanceled}));
    const store::JobRecord record = job.record;
    live_.erase(record.job.id);
    Wake();
    return StatusOf(record);
  }
  if (!MustStop(job.cause)) {
    TUTTI_RETURN_IF_ERROR(Append(job, {store::JobState::kFinalizing, why, Cause::kCanceled}));
    Wake();
  }
  return StatusOf(job.record);
}

absl::Status ServiceCore::Delete(absl::string_view id) {
  absl::MutexLock lock(&mutex_);
  if (live_.contains(id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " has not ended: cancel it first"));
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(id));
  if (!record.job.parent.empty() && store_->GetJob(record.job.parent).ok()) {
    return absl::FailedPreconditionError(absl::StrCat("job ", id, " is one of the jobs of ",
                                                      record.job.parent, ": delete that one"));
  }
  return DeleteOne(id);
}

// Children first: what an interrupted delete leaves is a parent with fewer of them.
absl::Status ServiceCore::DeleteOne(absl::string_view id) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> children, store_->ChildrenOf(id));
  for (const store::JobRecord& child : children) TUTTI_RETURN_IF_ERROR(DeleteOne(child.job.id));
  TUTTI_RETURN_IF_ERROR(files_.Hide(id));
  if (absl::Status deleted = store_->DeleteJob(id); !deleted.ok()) {
    const absl::Status restored = files_.Restore(id);
    if (!restored.ok()) spdlog::error("job {}: {}", std::string(id), restored.ToString());
    return deleted;
  }
  return files_.Remove(id);
}

absl::StatusOr<std::vector<NodeStatus>> ServiceCore::ListNodes() {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, std::string> holders;
  for (const auto& [allocation, leaving] : leaving_) {
    for (const std::string& node : leaving.nodes) holders[node] = JobOfAllocation(allocation);
  }
  for (const auto& [id, job] : live_) {
    if (job->placed == nullptr || job->record.job.spec.compute != "local") continue;
    for (const PlacedNode& node : job->placed->placement.nodes) holders[node.name] = id;
  }
  std::vector<NodeStatus> nodes;
  nodes.reserve(nodes_.size());
  for (const engine::Node& node : nodes_) nodes.push_back({node, holders[node.name]});
  return nodes;
}

}  // namespace tutti::service
