#include "platform/service/launcher_reports.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/allocation/launcher_silence.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/secrets/image_logins.h"
#include "platform/service/secrets/secrets.h"

namespace tutti::service {
namespace {

constexpr char kResultsWait[] = "results wait";

absl::Status Over(absl::string_view allocation) {
  return absl::AbortedError(absl::StrCat("allocation ", allocation, " is over: end"));
}

absl::Status NoSuchNode(absl::string_view allocation, int node) {
  return absl::InvalidArgumentError(absl::StrCat(allocation, " has no node ", node));
}

// For a call that all launchers make: so that they make 100 a second together.
absl::Duration PaceOfAll(const SharedState& state) {
  constexpr double kCallsPerSecond = 100;
  return static_cast<double>(state.usage_memory->nodes) / kCallsPerSecond * absl::Seconds(1);
}

absl::Duration QuestionPause(const SharedState& state) {
  return std::clamp(PaceOfAll(state), absl::Seconds(2), absl::Seconds(20));
}

bool HasGo(const LiveJob& job) {
  return job.record.last.state == store::JobState::kStarting ||
         job.record.last.state == store::JobState::kRunning;
}

}  // namespace

absl::StatusOr<LiveJob*> LauncherReports::Placed(absl::string_view allocation, int node,
                                                 bool asks) {
  LiveJob* const job = table_.FindPlaced(allocation);
  if (job == nullptr && cluster_queue_.IsBeingPlaced(allocation)) {
    return absl::UnavailableError(absl::StrCat("allocation ", allocation, " is being placed"));
  }
  if (job == nullptr) return Over(allocation);
  if (node < 0 || node >= job->placed->gang.size()) return NoSuchNode(allocation, node);
  if (asks && job->placed->stopped) return job;
  NoteWord(state_, *job, node);
  if (asks) NoteTaken(state_, *job, node);
  return job;
}

absl::StatusOr<Service::Acknowledgement> LauncherReports::ReportEvents(
    absl::string_view allocation, int node, int64_t first, const std::vector<std::string>& lines) {
  if (first < 1) return absl::InvalidArgumentError("events are numbered from 1");
  bool sync = false;
  auto told = Keep(allocation, node, first, lines, sync);
  if (absl::IsAborted(told.status())) {
    sync = true;  // its launcher goes, and with it all that does not survive a loss of power here
    told = AnswerForEndedJob(allocation, node, first + static_cast<int64_t>(lines.size()) - 1);
  }
  if (sync) TUTTI_RETURN_IF_ERROR(state_.store->Sync());
  return told;
}

absl::StatusOr<Service::Acknowledgement> LauncherReports::Keep(
    absl::string_view allocation, int node, int64_t first, const std::vector<std::string>& lines,
    bool& sync) {
  StateLock lock(state_);
  TUTTI_ASSIGN_OR_RETURN(LiveJob* const placed, Placed(allocation, node));
  LiveJob& job = *placed;
  Gang& gang = job.placed->gang;
  for (const std::string& line : lines) TUTTI_RETURN_IF_ERROR(gang.Check(node, line));
  TUTTI_ASSIGN_OR_RETURN(const int64_t kept,
                         state_.store->AddLauncherEvents(job.record.job.id, allocation, node, first,
                                                         lines, store::Durability::kCrash));
  NoteTaken(state_, job, node);
  sync = OutlivesThisMachine(job) && (!lines.empty() || HasGo(job));
  while (gang.count(node) < kept) {
    gang.Apply(node, lines.at(gang.count(node) + 1 - first), state_.clock->SinceBoot());
  }
  state_.Wake();
  return Service::Acknowledgement{
      .acknowledged = kept, .go = HasGo(job), .served = job.cause == Cause::kServed};
}

// A launcher whose last acknowledgement was lost asks again after its job has ended. What was kept
// is acknowledged; what comes after the end is nobody's.
absl::StatusOr<Service::Acknowledgement> LauncherReports::AnswerForEndedJob(
    absl::string_view allocation, int node, int64_t last) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> kept,
                         state_.store->LauncherEvents(allocation, node));
  if (kept.empty() || last > static_cast<int64_t>(kept.size())) return Over(allocation);
  return Service::Acknowledgement{.acknowledged = static_cast<int64_t>(kept.size())};
}

absl::StatusOr<Service::Go> LauncherReports::MayGo(absl::string_view allocation, int node) {
  int64_t last_event = 0;
  {
    StateLock lock(state_);
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node, /*asks=*/true));
    if (!HasGo(*job)) {
      const bool decided = job->record.last.state >= store::JobState::kStarting;
      return decided || state_.stopping ? Service::Go::kNever : Service::Go::kNotYet;
    }
    if (!OutlivesThisMachine(*job)) return Service::Go::kYes;
    last_event = job->record.last.sequence;
  }
  TUTTI_RETURN_IF_ERROR(AwaitDurable(state_, last_event));
  return Service::Go::kYes;
}

// Follower notifies it of every event of the job, but not of its output, which is much and which
// nobody here asks for.
absl::StatusOr<Subscription> LauncherReports::OnNewsOfAllocation(absl::string_view allocation,
                                                                 int node,
                                                                 std::function<void()> wake) {
  StateLock lock(state_);
  TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node, /*asks=*/true));
  return job->steps->Subscribe(std::move(wake));
}

absl::StatusOr<std::string> LauncherReports::JobOf(absl::string_view allocation, int node) {
  StateLock lock(state_);
  TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
  return job->record.job.id;
}

absl::StatusOr<store::Job> LauncherReports::JobToTrack(absl::string_view allocation, int node,
                                                       JobRuns& runs) {
  StateLock lock(state_);
  TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
  runs.Open(job->record.job);
  return job->record.job;
}

absl::StatusOr<std::set<std::string>> LauncherReports::SecretNamesFor(absl::string_view allocation,
                                                                      int node) {
  std::set<std::string> names;
  spec::Image image;
  {
    StateLock lock(state_);
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
    names = SecretsOf(job->record.job.spec);
    image = job->record.job.spec.environment.image;
  }
  if (image.empty()) return names;
  TUTTI_ASSIGN_OR_RETURN(const std::set<std::string> known, state_.store->SecretNames());
  names.merge(LoginSecretsOf(image, known));
  return names;
}

absl::Status LauncherReports::CheckUnderWay(absl::string_view allocation) {
  StateLock lock(state_);
  return table_.FindByAllocation(allocation) == nullptr ? Over(allocation) : absl::OkStatus();
}

std::vector<std::string> LauncherReports::AllocationsUnderWay() {
  StateLock lock(state_);
  std::vector<std::string> allocations;
  for (const auto& [id, job] : table_.live()) {
    const bool on_cluster = job->flow == nullptr && job->record.job.spec.compute != "local";
    if (job->placed != nullptr) {
      allocations.push_back(job->placed->placement.allocation);
    } else if (on_cluster) {
      allocations.push_back(AllocationOf(*job));
    }
  }
  return allocations;
}

absl::Status LauncherReports::NoteFullDisk(absl::string_view allocation, const char* what,
                                           absl::Status status, uint64_t bytes) {
  if (!absl::IsResourceExhausted(status)) return status;
  NoteWriteOfJobs(state_, status, bytes);
  StateLock lock(state_);
  if (LiveJob* const job = table_.FindPlaced(allocation)) {
    job->placed->held_up = absl::StrCat("its ", what, " on its nodes: ", status.message());
    job->placed->held_up_at = state_.clock->SinceBoot();
  }
  return status;
}

absl::StatusOr<uint64_t> LauncherReports::AppendOutput(absl::string_view allocation, int node,
                                                       int rank, LogStream stream, uint64_t offset,
                                                       absl::string_view bytes) {
  std::shared_ptr<JobLogs> logs;
  std::shared_ptr<Notifier> news;
  {
    StateLock lock(state_);
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node));
    const PlacedNode& place = job->placed->placement.nodes[node];
    if (rank < place.first_rank || rank >= place.first_rank + place.process_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " does not run on ", place.name));
    }
    logs = job->placed->logs;
    news = job->news;
  }
  constexpr char kWaits[] = "output waits";
  TUTTI_RETURN_IF_ERROR(NoteFullDisk(allocation, kWaits, DiskOfJobs(state_).Check()));
  const bool was_full = logs->full();
  auto kept = logs->Append(rank, stream, offset, bytes);
  NoteFullDisk(allocation, kWaits, kept.status()).IgnoreError();
  {
    StateLock lock(state_);
    LiveJob* const job = kept.ok() ? table_.FindPlaced(allocation) : nullptr;
    if (job != nullptr) NoteTaken(state_, *job, node);
    if (!was_full && logs->full()) state_.Wake();  // its user is to know
  }
  if (absl::IsFailedPrecondition(kept.status())) return Over(allocation);
  news->Notify();
  return kept;
}

// Its files are written by the job's thread of folders, which no output waits for, and not on a
// disk that is full: what is left there is for what must not be lost.
absl::StatusOr<absl::Duration> LauncherReports::TakeUsage(absl::string_view allocation, int node,
                                                          std::vector<spec::UsageSample> samples,
                                                          std::optional<absl::Time> sent) {
  constexpr absl::Duration kPeriod = absl::Seconds(1), kLongestPause = absl::Seconds(20);
  if (!state_.options.measures_usage) {
    return absl::NotFoundError("this service has nothing measured (tutti serve --no-usage)");
  }
  std::string id;
  std::shared_ptr<JobUsage> usage;
  {
    StateLock lock(state_);
    // It is made beside what a launcher is there for, and so tells no more than a question.
    TUTTI_ASSIGN_OR_RETURN(const LiveJob* const job, Placed(allocation, node, /*asks=*/true));
    id = job->record.job.id;
    usage = job->placed->usage;
  }
  const absl::Time now = state_.clock->Now();
  for (spec::UsageSample& sample : samples)
    sample.time += sent ? now - *sent : absl::ZeroDuration();
  if (usage->Take(node, std::move(samples), now, state_.clock->SinceBoot())) {
    state_.folder_work.Do(id, [this, usage] { usage->Save(DiskOfJobs(state_).Check().ok()); });
  }
  const absl::Duration pace = PaceOfAll(state_);
  return pace > kPeriod ? std::min(pace, kLongestPause) : absl::ZeroDuration();
}

absl::StatusOr<spec::Questions> LauncherReports::QuestionsFor(absl::string_view allocation,
                                                              int node, OpenQuestions& questions) {
  bool has_ended = false;
  {
    StateLock lock(state_);
    TUTTI_ASSIGN_OR_RETURN(LiveJob* const job, Placed(allocation, node, /*asks=*/true));
    job->placed->nodes.at(node).listens = true;
    has_ended = job->placed->gang.AllExited(node);
  }
  if (has_ended) questions.EndNode(allocation, node);
  return spec::Questions{.questions = questions.ForNode(allocation, node),
                         .pause = QuestionPause(state_)};
}

std::vector<AskedNode> NodesToAsk(const PlacedJob& placed, const QuestionQuery& query) {
  std::vector<AskedNode> nodes;
  for (size_t i = 0; i < placed.placement.nodes.size(); ++i) {
    const PlacedNode& place = placed.placement.nodes[i];
    AskedNode& node = nodes.emplace_back(AskedNode{.name = place.name});
    node.listens = placed.nodes.at(i).listens;
    node.ended = placed.gang.AllExited(static_cast<int>(i));
    if (query.kind == spec::kResultsQuestion) {
      node.ranks = {place.first_rank};
      continue;
    }
    for (int rank = place.first_rank; rank < place.first_rank + place.process_count; ++rank) {
      if (!query.rank || rank == *query.rank) node.ranks.push_back(rank);
    }
  }
  return nodes;
}

absl::Duration UnheardAfter(const SharedState& state) {
  return absl::Seconds(15) + QuestionPause(state);
}

// A job is not held up by what it sends while it runs.
absl::Status LauncherReports::NoteResultsWait(absl::string_view allocation, absl::Status status,
                                              bool so_far, uint64_t bytes) {
  return so_far ? status : NoteFullDisk(allocation, kResultsWait, std::move(status), bytes);
}

absl::StatusOr<std::unique_ptr<IncomingFile>> LauncherReports::ReceiveFile(
    absl::string_view allocation, int node, absl::string_view path, uint64_t bytes, bool so_far) {
  TUTTI_ASSIGN_OR_RETURN(const std::string job_id, JobOf(allocation, node));
  TUTTI_RETURN_IF_ERROR(state_.folders.Await(state_.files.FolderOf(job_id)));
  TUTTI_RETURN_IF_ERROR(NoteResultsWait(allocation, DiskOfJobs(state_).Check(bytes), so_far));
  auto file = state_.files.Receive(job_id, path, so_far ? allocation : "");
  if (file.ok() && !so_far) (*file)->MoveBy(MoveResultsOf(allocation, node));
  TUTTI_RETURN_IF_ERROR(NoteResultsWait(
      allocation, file.ok() ? Reserve(**file, bytes) : file.status(), so_far, bytes));
  // A large file can take longer than a launcher may be silent.
  (*file)->OnWrite([this, allocation = std::string(allocation), node] {
    StateLock lock(state_);
    (void)Placed(allocation, node);
  });
  return file;
}

MoveResult LauncherReports::MoveResultsOf(absl::string_view allocation, int node) {
  StateLock lock(state_);
  const LiveJob* const job = table_.FindPlaced(allocation);
  if (job == nullptr || job->placed->gang.size() == 1) return MoveIntoPlace;
  // No process has begun, so that this is of the earlier job from which this one resumes: what any
  // node makes of it later is in its place.
  if (!job->placed->gang.AllPrepared()) return MoveIntoPlace;
  return [this, allocation = std::string(allocation), sent = job->placed->sent,
          folder = state_.files.FolderOf(job->record.job.id),
          sender = SentResults::Node{node, job->placed->placement.nodes.at(node).name}](
             const std::filesystem::path& arrived,
             const std::filesystem::path& path) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<SamePath> same, sent->Move(sender, arrived, path));
    if (!same) return absl::OkStatus();
    StateLock lock(state_);
    LiveJob* const live = table_.FindPlaced(allocation);
    if (live == nullptr) return absl::OkStatus();
    Gang& gang = live->placed->gang;
    gang.NoteOwner(same->path.lexically_relative(folder).native(), same->node);
    gang.NoteOwner(same->beside.lexically_relative(folder).native(), same->beside_node);
    return absl::OkStatus();
  };
}

// Checks again, as several may have found the same room free before.
absl::Status LauncherReports::Reserve(IncomingFile& file, uint64_t bytes) {
  TUTTI_RETURN_IF_ERROR(file.Reserve(bytes));
  return DiskOfJobs(state_).Check();  // who is refused drops the file, and its room with it
}

absl::StatusOr<std::vector<absl::Status>> LauncherReports::ReceiveFiles(
    absl::string_view allocation, int node, const std::vector<http::BatchFile>& files,
    bool so_far) {
  TUTTI_ASSIGN_OR_RETURN(const std::string job, JobOf(allocation, node));
  TUTTI_RETURN_IF_ERROR(state_.folders.Await(state_.files.FolderOf(job)));
  TUTTI_RETURN_IF_ERROR(NoteResultsWait(allocation, DiskOfJobs(state_).Check(), so_far));
  auto received = so_far ? state_.files.ReceiveAll(job, files, allocation)
                         : state_.files.ReceiveAll(job, files, "", MoveResultsOf(allocation, node));
  NoteResultsWait(allocation, received.status(), so_far).IgnoreError();
  return received;
}

}  // namespace tutti::service
