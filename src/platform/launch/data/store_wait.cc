#include "platform/launch/data/store_wait.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "base/threads/retry_after.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenFailuresTold = absl::Minutes(10);
constexpr size_t kLongestFailure = 600;

// Whatever else fails stays as it is.
bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) && storage::SourceOf(status) != storage::FaultSource::kDisk;
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string InWholeSeconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

// A server that sends the same bytes again each time brings nothing.
class ComingBytes {
 public:
  explicit ComingBytes(StoreWait& wait) : wait_(wait) {}
  void Note(int64_t bytes) {
    if (bytes > most_) wait_.NoteAnswer();
    most_ = std::max(most_, bytes);
  }

 private:
  StoreWait& wait_;
  int64_t most_ = 0;  // so far
};

}  // namespace

StoreWait::StoreWait(std::string what, const WaitParts& parts, const std::atomic<bool>& cancelled)
    : what_(std::move(what)),
      parts_(parts),
      cancelled_(cancelled),
      pause_(parts.patience.first_pause, parts.patience.longest_pause) {}

StoreWait::~StoreWait() { Release(); }

void StoreWait::Release() {
  if (!since_) return;
  since_.reset();
  told_.clear();
  pause_.Reset();
  parts_.held("");
}

void StoreWait::NoteAnswer() {
  if (!since_) return;
  const absl::Duration waited = parts_.steady() - *since_;
  Release();
  parts_.log(absl::StrCat(what_, ": its store answers again after ", InWholeSeconds(waited),
                          "; the fetch goes on where it was"));
}

absl::Status StoreWait::Await(const absl::Status& failure) {
  const absl::Duration now = parts_.steady();
  if (!since_) {
    since_ = now;
    since_time_ = parts_.now();
  }
  const absl::Duration left = parts_.patience.limit - (now - *since_);
  if (left <= absl::ZeroDuration()) {
    return absl::Status(failure.code(),
                        absl::StrCat(failure.message(), "; the job has waited for it for ",
                                     InWholeSeconds(now - *since_)));
  }
  if (!cancelled_) Tell(failure);
  base::PauseUnlessCancelled(std::min(pause_.Next(base::RetryAfterOf(failure)), left), cancelled_);
  return cancelled_ ? absl::CancelledError("told to end") : absl::OkStatus();
}

void StoreWait::Tell(const absl::Status& failure) {
  const absl::Duration now = parts_.steady();
  const bool is_first = told_.empty();
  if (!is_first && (failure.message() == told_ || now - told_at_ < kBetweenFailuresTold)) return;
  told_ = std::string(failure.message());
  told_at_ = now;
  std::string fault = base::BoundedUtf8(told_, kLongestFailure);
  const std::string line = absl::StrCat(
      absl::StartsWith(fault, what_) ? fault : absl::StrCat(what_, ": ", fault),
      "; the job waits for the store since ", UtcText(since_time_), ", until ",
      UtcText(since_time_ + parts_.patience.limit), " at most, and then goes on where it was; ",
      "tutti job cancel ", parts_.job, " ends it");
  parts_.held(line);
  if (is_first) parts_.log(line);
}

StorageFunction WaitingStorage(std::string what, StorageFunction run, WaitParts parts) {
  return [what = std::move(what), run = std::move(run), parts = std::move(parts)](
             storage::StorageRequest request, base::Deadline deadline,
             const std::atomic<bool>& cancelled,
             const std::function<void(const storage::StorageProgress&)>& progress,
             int lock) -> absl::StatusOr<storage::StorageResult> {
    request.tells_retry_after = true;
    const absl::Duration time = deadline.Remaining();
    StoreWait wait(what, parts, cancelled);
    ComingBytes coming(wait);
    const auto note = [&](const storage::StorageProgress& now) {
      coming.Note(now.bytes);
      if (progress) progress(now);
    };
    while (true) {
      auto result = run(request, base::Deadline::After(time), cancelled, note, lock);
      if (result.ok()) wait.NoteAnswer();
      if (!IsAway(result.status())) return result;
      TUTTI_RETURN_IF_ERROR(wait.Await(result.status()));
    }
  };
}

absl::StatusOr<FetchedInput> FetchWaiting(std::string what, const HttpFetch& fetch,
                                          const WaitParts& parts,
                                          const std::atomic<bool>& cancelled) {
  StoreWait wait(std::move(what), parts, cancelled);
  ComingBytes coming(wait);
  while (true) {
    auto fetched = fetch([&](int64_t bytes) { coming.Note(bytes); });
    if (fetched.ok()) wait.NoteAnswer();
    const bool may_pass =
        absl::IsUnavailable(fetched.status()) || absl::IsDeadlineExceeded(fetched.status());
    if (!may_pass) return fetched;
    TUTTI_RETURN_IF_ERROR(wait.Await(fetched.status()));
  }
}

}  // namespace tutti::launch
