#include "platform/service/service.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "platform/service/jobs/free_port.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

ServiceOptions WithDefaults(ServiceOptions options) {
  if (!options.find_port) options.find_port = FindFreePort;
  if (options.boot_id.empty()) options.boot_id = base::BootId();
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
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records, store_->NonTerminalJobs());
  absl::MutexLock lock(&mutex_);
  const std::filesystem::path incoming = options_.directory / "incoming";
  Complain("what an earlier service was receiving stays", base::RemoveTree(incoming));
  RestoreInterruptedDeletes();
  for (store::JobRecord& record : records) TUTTI_RETURN_IF_ERROR(RebuildJob(std::move(record)));
  TUTTI_ASSIGN_OR_RETURN(nodes_, engines_.local->ListNodes());
  return absl::OkStatus();
}

void ServiceCore::RestoreInterruptedDeletes() {
  for (const std::string& job : files_.Hidden()) {
    const bool kept = !absl::IsNotFound(store_->GetJob(job).status());
    Complain(absl::StrCat("an interrupted delete of job ", job, " cannot be finished"),
             kept ? files_.Restore(job) : files_.Remove(job), {.job = job});
  }
}

absl::Status ServiceCore::RebuildJob(store::JobRecord record) {
  auto job = std::make_unique<LiveJob>();
  Detail detail = DetailFromJson(record.last.detail);
  job->record = std::move(record);
  job->cause = detail.cause;
  job->former = std::move(detail.former);
  job->begun_before = detail.begun_before;
  if (detail.placement) {
    TUTTI_ASSIGN_OR_RETURN(
        job->placed,
        RebuildGang(job->record.job.id, *std::move(detail.placement), OpenLogs::kWhenPossible));
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
                                                                    Placement placement,
                                                                    OpenLogs open) {
  TUTTI_ASSIGN_OR_RETURN(auto job, MakeGang(job_id, std::move(placement), open));
  for (int node = 0; node < job->gang.size(); ++node) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           store_->LauncherEvents(job->placement.allocation, node));
    for (const std::string& line : lines) job->gang.Apply(node, line);
  }
  return job;
}

absl::StatusOr<std::unique_ptr<PlacedJob>> ServiceCore::MakeGang(const std::string& job_id,
                                                                 Placement placement,
                                                                 OpenLogs open) {
  const absl::Time now = clock_->Now();
  auto job = std::make_unique<PlacedJob>(std::move(placement));
  job->nodes.assign(job->placement.nodes.size(), LiveNode{.last_word = now});
  job->started_at = now;
  job->logs = JobLogs::OpenLater(files_.FolderOf(job_id) / "logs", clock_, options_.log_limit,
                                 AttemptOf(job->placement.allocation));
  const absl::Status opened = job->logs->TryToOpen();
  if (open == OpenLogs::kNow) TUTTI_RETURN_IF_ERROR(opened);
  return job;  // else LookAfterLogs tries again, and says why
}

void ServiceCore::Wake() {
  dirty_ = true;
  wake_.Signal();
}

absl::Status ServiceCore::Append(LiveJob& job, const Step& step) {
  Detail detail{.former = job.former,
                .begun_before = job.begun_before,
                .cause = step.cause,
                .failures = step.failures};
  if (step.state == store::JobState::kQueued) {  // it is begun again
    detail.former = FormerAfter(job);
    detail.begun_before = job.attempt();
  } else if (job.placed != nullptr) {
    detail.placement = job.placed->placement;
  }
  // That it is placed is on the disk before a launcher may run, and its end before one is told.
  const bool is_between = step.state != store::JobState::kQueued &&
                          step.state != store::JobState::kProvisioning && !IsEnd(step.state);
  TUTTI_ASSIGN_OR_RETURN(
      store::Event event,
      store_->AppendEvent(job.record.job.id, job.record.last.sequence,
                          {.time = clock_->Now(),
                           .state = step.state,
                           .reason = step.reason,
                           .detail = ToJson(detail)},
                          is_between ? NeedOf(job) : store::Survives::kPowerLoss));
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
  } else if (live != live_.end() && live->second->placed != nullptr) {
    const std::string why = WhyOutOfReach(record.job.spec.compute);
    if (!why.empty()) status.reason = why;
    if (!live->second->placed->logs->opened()) status.reason = OutputTrouble(record.job.id);
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
    EndLive(job);
    Wake();
    return StatusOf(record);
  }
  const bool might_return =
      job.cause == Cause::kFailure && job.attempt() <= job.record.job.spec.max_retries;
  if (!MustStop(job.cause) || might_return) {
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

NodeList ServiceCore::ListNodes() {
  std::vector<std::pair<std::string, absl::StatusOr<std::vector<engine::Node>>>> told;
  for (const auto& [compute, engine] : engines_.clusters) {
    told.emplace_back(compute, engine->ListNodes());
  }
  absl::MutexLock lock(&mutex_);
  told.emplace(told.begin(), "local", nodes_);
  std::map<std::pair<std::string, std::string>, std::string> holders;  // by compute and node
  for (const auto& [allocation, leaving] : leaving_) {
    for (const std::string& node : leaving.nodes) {
      holders[{leaving.compute, node}] = JobOfAllocation(allocation);
    }
  }
  for (const LiveJob* job : placed_) {
    const store::Job& fixed = job->record.job;
    for (const PlacedNode& node : job->placed->placement.nodes) {
      holders[{fixed.spec.compute, node.name}] = fixed.id;
    }
  }
  NodeList list;
  for (const auto& [compute, nodes] : told) {
    if (!nodes.ok()) {
      list.warnings.push_back(absl::StrCat("the nodes of compute ", compute,
                                           " are not known: ", nodes.status().message()));
      continue;
    }
    for (const engine::Node& node : *nodes) {
      list.nodes.push_back({compute, node, holders[{compute, node.name}]});
    }
  }
  return list;
}

}  // namespace tutti::service
