#include "platform/launch/delivery/folder_delivery.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/delivery/beat.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(250);
constexpr absl::Duration kQuietLook = absl::Seconds(5);  // whether the service still knows us
constexpr int kLooksForFolder = 5;                       // that do not find it, before it is gone

// Returns whether the node's folder has been removed. The cluster's folder, two above it, must be
// there with something in it: where it is not mounted it is away, or empty.
bool IsRemoved(const std::filesystem::path& folder) {
  const std::filesystem::path shared = folder.parent_path().parent_path();
  // An NFS client asks its server anew for what it opens.
  if (!base::Open(shared, O_RDONLY | O_DIRECTORY).ok()) return false;
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) == 0 || errno != ENOENT) return false;
  std::error_code error;
  const std::filesystem::directory_iterator first(shared, error);
  return !error && first != std::filesystem::directory_iterator();
}

absl::Status Gone() { return absl::AbortedError("the service does not know this allocation"); }

}  // namespace

FolderDelivery::FolderDelivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool,
                               Wakeup* news, absl::Duration removed_after)
    : Delivery(events, spool, news),
      folders_(plan.directory),
      has_others_(plan.nodes.size() > 1),
      removed_after_(removed_after),
      beat_(BeatOf(plan)),
      pauses_(beat_, beat_) {}

void FolderDelivery::Begin() {
  if (!thread_.joinable()) thread_ = std::thread([this] { DeliveryLoop(); });
}

FolderDelivery::~FolderDelivery() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void FolderDelivery::DeliveryLoop() {
  base::Deadline quiet = base::Deadline::After(absl::ZeroDuration());
  std::string logged;
  while (true) {
    BeatIfQuiet();
    const absl::Status written = gone_ ? absl::OkStatus() : PublishWritten();
    if (!written.ok() || quiet.Expired() || missed_ > 0) LookForFolder();
    if (!written.ok() && logged != written.message())
      spdlog::error("{}; trying on", written.ToString());
    logged = std::string(written.message());
    if (AwaitsAnswer() || quiet.Expired()) {
      ReadAcknowledged();
      quiet = base::Deadline::After(kQuietLook);
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&ending_), kLook)) return;
  }
}

// Publishes what has been written, once it is synced to the disk.
absl::Status FolderDelivery::PublishWritten() {
  Written now;
  now.events = events_->kept();
  now.beats = beats_;
  for (const auto& file : spool_->files()) {
    now.streams[absl::StrCat("rank-", file->rank(), ".", file->stream())] = file->Size();
  }
  {
    absl::MutexLock lock(&mutex_);
    now.results = results_lists_ > 0;
    now.results_lists = results_lists_;
  }
  if (published_ == now && now.events == events_->size()) return absl::OkStatus();
  const absl::Status synced = SyncWhatIsNewIn(now);
  if (synced.ok()) return published_ == now ? synced : Publish(now);
  if (published_ && published_->beats != now.beats) {  // that it lives it says on a full disk too
    Written beat = *published_;
    beat.beats = now.beats;
    Publish(beat).IgnoreError();
  }
  return synced;
}

// What the disk did not take before is published with what is next.
absl::Status FolderDelivery::SyncWhatIsNewIn(const Written& now) {
  const bool has_rest = now.events < events_->size();
  if (!published_ || published_->events != now.events || has_rest) {
    TUTTI_RETURN_IF_ERROR(events_->Sync());
  }
  for (const auto& file : spool_->files()) {
    const std::string name = absl::StrCat("rank-", file->rank(), ".", file->stream());
    if (!published_ || published_->streams[name] != now.streams.at(name))
      TUTTI_RETURN_IF_ERROR(file->Sync());
  }
  return absl::OkStatus();
}

absl::Status FolderDelivery::Publish(const Written& now) {
  TUTTI_RETURN_IF_ERROR(base::ReplaceOrOverwrite(folders_.written(), ToJson(now)));
  published_ = now;
  published_at_ = base::SteadyNow();
  pause_ = pauses_.Next();
  return absl::OkStatus();
}

// A change of the count tells that it lives, where nothing else has changed for a while.
void FolderDelivery::BeatIfQuiet() {
  const bool is_told = !published_ || published_->beats != beats_;
  if (beat_ == absl::ZeroDuration() || is_told) return;
  if (base::SteadyNow() - published_at_ >= pause_) ++beats_;
}

void FolderDelivery::LookForFolder() {
  if (gone_ || !IsRemoved(folders_.root)) {
    missed_ = 0;
    return;
  }
  if (++missed_ == 1) missed_since_ = base::SteadyNow();
  if (missed_ < kLooksForFolder || base::SteadyNow() - missed_since_ < removed_after_) return;
  spdlog::warn("{} has been removed, so nobody waits for this node", folders_.root.native());
  {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
  }
  news_->Notify();
}

bool FolderDelivery::AwaitsAnswer() {
  absl::MutexLock lock(&mutex_);
  return (has_others_ && !go_) || events_acknowledged_ < events_->size() || spool_->Backlog() > 0 ||
         (code_awaited_ && !answer_.code) || HasResultsToSend();
}

// A collector of before there were several lists answers the first one by its outcome alone.
bool FolderDelivery::HasResultsToSend() {
  const int64_t delivered =
      answer_.results ? std::max<int64_t>(answer_.results_lists, 1) : answer_.results_lists;
  return delivered < results_lists_;
}

void FolderDelivery::ReadAcknowledged() {
  auto text = base::ReadFile(folders_.acknowledged(), 64 << 20);
  if (!text.ok() || *text == last_answer_ || !IsWhole(*text)) return;
  const bool is_first = last_answer_.empty();
  last_answer_ = *std::move(text);
  const Acknowledged word = AcknowledgedFromJson(last_answer_);
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& file : spool_->files()) {
      const auto at = word.streams.find(absl::StrCat("rank-", file->rank(), ".", file->stream()));
      if (at != word.streams.end()) file->Acknowledge(std::min(at->second, file->Size()));
    }
    if (!is_first && word.words != answer_.words) {
      put_off_ = absl::ToInt64Nanoseconds(base::SteadyNow());
    }
    events_acknowledged_ = word.events;
    answer_ = word;
    if (word.go) go_ = true;
    served_ = word.served;
    if (word.gone) gone_ = true;
  }
  news_->Notify();
}

absl::StatusOr<std::filesystem::path> FolderDelivery::FetchCode(const std::filesystem::path&) {
  absl::MutexLock lock(&mutex_);
  code_awaited_ = true;
  const auto done = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return answer_.code || gone_ || code_abandoned_;
  };
  mutex_.Await(absl::Condition(&done));
  if (gone_) return Gone();
  if (!answer_.code) return absl::CancelledError("stopped while the code was awaited");
  if (!answer_.code->empty()) return absl::UnknownError(*answer_.code);
  return folders_.code();
}

// Nodes that share a folder with the service see its programs there.
absl::Status FolderDelivery::FetchProgram(const std::string& snapshot,
                                          const std::filesystem::path&) {
  return absl::FailedPreconditionError(
      absl::StrCat("this node does not reach the service, which has the program ", snapshot));
}

void FolderDelivery::AbandonCode() {
  absl::MutexLock lock(&mutex_);
  code_abandoned_ = true;
}

// The service refuses such jobs; a service that could be reached when this one came may not be now.
absl::StatusOr<SecretValues> FolderDelivery::FetchSecrets() {
  return absl::FailedPreconditionError(
      "this node does not reach the service, and no secret is to lie in the folder between them");
}

absl::StatusOr<TrackedRun> FolderDelivery::FetchRun(base::Deadline /*deadline*/) {
  return absl::FailedPreconditionError("this node does not reach the service");
}

// A job that has run well waits for room.
absl::Status FolderDelivery::ListResults(const std::vector<Result>& files, Patience patience) {
  const base::Deadline deadline = patience.EndAfter(kNeverPutOff);
  const std::string list = ToText(files, folders_.root);
  while (true) {
    const absl::Status listed = base::WriteFileAtomic(folders_.results(), list);
    if (!absl::IsResourceExhausted(listed) || deadline.Expired()) return listed;
    const auto is_gone = [this] { return gone(); };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&is_gone), std::min(kLook, deadline.Remaining()));
    if (gone_) return Gone();
  }
}

absl::Status FolderDelivery::SendResults(const std::vector<Result>& files, Patience patience) {
  TUTTI_RETURN_IF_ERROR(ListResults(files, patience));
  absl::MutexLock lock(&mutex_);
  results_lists_ = std::max(results_lists_, answer_.results_lists) + 1;
  const auto done = [this]()
                        ABSL_NO_THREAD_SAFETY_ANALYSIS { return !HasResultsToSend() || gone_; };
  if (!AwaitWithin(patience, Stream::kResults, absl::Condition(&done))) {
    return absl::DeadlineExceededError("nobody has taken the results from the shared folder");
  }
  if (gone_) return Gone();
  return answer_.results->empty() ? absl::OkStatus() : absl::UnknownError(*answer_.results);
}

}  // namespace tutti::launch
