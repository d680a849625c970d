// What launchers ask for and report.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

absl::Status Over(absl::string_view allocation) {
  return absl::AbortedError(absl::StrCat("allocation ", allocation, " is over: end"));
}

absl::Status NoSuchNode(absl::string_view allocation, int node) {
  return absl::InvalidArgumentError(absl::StrCat(allocation, " has no node ", node));
}

bool MayGo(const LiveJob& job) {
  return job.record.last.state == store::JobState::kStarting ||
         job.record.last.state == store::JobState::kRunning;
}

}  // namespace

store::Survives ServiceCore::NeedOf(const LiveJob& job) {
  const bool is_here = job.placed != nullptr && !job.placed->placement.boot_id.empty();
  return is_here ? store::Survives::kCrash : store::Survives::kPowerLoss;
}

LiveJob* ServiceCore::LiveJobOf(absl::string_view allocation) {
  const auto live = live_.find(JobOfAllocation(allocation));
  if (live == live_.end()) return nullptr;
  return AllocationOf(*live->second) == allocation ? live->second.get() : nullptr;
}

LiveJob* ServiceCore::JobOn(absl::string_view allocation) {
  LiveJob* const job = LiveJobOf(allocation);
  return job != nullptr && job->placed != nullptr ? job : nullptr;
}

// Every call of a launcher comes by here: a sign of life.
absl::StatusOr<LiveJob*> ServiceCore::Placed(absl::string_view allocation, int node, bool asks) {
  LiveJob* const job = JobOn(allocation);
  if (job == nullptr && IsBeingPlaced(allocation)) {
    return absl::UnavailableError(absl::StrCat("allocation ", allocation, " is being placed"));
  }
  if (job == nullptr) return Over(allocation);
  if (node < 0 || node >= job->placed->gang.size()) return NoSuchNode(allocation, node);
  if (!asks || !job->placed->stopped) job->placed->nodes[node].last_word = clock_->Now();
  return job;
}

absl::StatusOr<Service::Acknowledgement> ServiceCore::ReportEvents(
    absl::string_view allocation, int node, int64_t first, const std::vector<std::string>& lines) {
  if (first < 1) return absl::InvalidArgumentError("events are numbered from 1");
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<LiveJob*> placed = Placed(allocation, node);
  if (absl::IsAborted(placed.status())) {
    return AnswerForEndedJob(allocation, node, first + static_cast<int64_t>(lines.size()) - 1);
  }
  TUTTI_RETURN_IF_ERROR(placed.status());
  const LiveJob& job = **placed;
  Gang& gang = job.placed->gang;
  for (const std::string& line : lines) TUTTI_RETURN_IF_ERROR(gang.Check(node, line));
  TUTTI_ASSIGN_OR_RETURN(
      const int64_t kept,
      store_->AddLauncherEvents(job.record.job.id, allocation, node, first, lines, NeedOf(job)));
  while (gang.count(node) < kept) gang.Apply(node, lines.at(gang.count(node) + 1 - first));
  Wake();
  return Acknowledgement{.acknowledged = kept, .go = MayGo(job)};
}

// A launcher whose last acknowledgement was lost asks again after its job has ended. What was kept
// is acknowledged; what comes after the end is nobody's.
absl::StatusOr<Service::Acknowledgement> ServiceCore::AnswerForEndedJob(
    absl::string_view allocation, int node, int64_t last) {
  const auto kept = store_->LauncherEvents(allocation, node);
  if (!kept.ok() || kept->empty() || last > static_cast<int64_t>(kept->size())) {
    return Over(allocation);
  }
  return Acknowledgement{.acknowledged = static_cast<int64_t>(kept->size())};
}

absl::StatusOr<bool> ServiceCore::WaitForGo(absl::string_view allocation, int node,
                                            base::Deadline deadline) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node, /*asks=*/true));
    const bool decided = job->record.last.state >= store::JobState::kStarting;
    if (MayGo(*job) || decided || stopping_ || deadline.Expired()) return MayGo(*job);
    changed_.WaitWithTimeout(&mutex_, deadline.Remaining());
  }
}

absl::StatusOr<uint64_t> ServiceCore::AppendOutput(absl::string_view allocation, int node, int rank,
                                                   Stream stream, uint64_t offset,
                                                   absl::string_view bytes) {
  std::shared_ptr<JobLogs> logs;
  std::shared_ptr<Bell> bell;
  {
    absl::MutexLock lock(&mutex_);
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
    const PlacedNode& place = job->placed->placement.nodes[node];
    if (rank < place.first_rank || rank >= place.first_rank + place.process_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " does not run on ", place.name));
    }
    logs = job->placed->logs;
    bell = job->bell;
  }
  const bool was_full = logs->full();
  auto kept = logs->Append(rank, stream, offset, bytes);
  if (!was_full && logs->full()) {
    absl::MutexLock lock(&mutex_);
    Wake();  // its user is to know
  }
  if (absl::IsFailedPrecondition(kept.status())) return Over(allocation);
  bell->Ring();
  return kept;
}

absl::StatusOr<std::unique_ptr<IncomingFile>> ServiceCore::ReceiveFile(absl::string_view allocation,
                                                                       int node,
                                                                       absl::string_view path) {
  std::string job_id;
  {
    absl::MutexLock lock(&mutex_);
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
    job_id = job->record.job.id;
  }
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<IncomingFile> file, files_.Receive(job_id, path));
  // A large file can take longer than a launcher may be silent.
  file->OnWrite([this, allocation = std::string(allocation), node] {
    absl::MutexLock lock(&mutex_);
    (void)Placed(allocation, node);
  });
  return file;
}

}  // namespace tutti::service
