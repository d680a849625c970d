// How a follower is told what happened: state changes from the store, lines from the logs, merged
// by time. The cursor says what it has been told; nothing is kept for it in between.
#include "base/status.h"
#include "platform/service/cursor.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

constexpr size_t kBatchBytes = 1 << 20;

// Turns events and lines into items; each carries the cursor that stands behind it.
class Merge {
 public:
  explicit Merge(Cursor from) : cursor_(from) {}

  void Event(const store::Event& event) {
    cursor_.event = event.sequence;
    items_.push_back({.cursor = ToString(cursor_), .time = event.time, .event = event});
  }
  void Line(LogLine line) {
    cursor_.position = line.next;
    items_.push_back({.cursor = ToString(cursor_),
                      .time = line.time,
                      .rank = line.rank,
                      .stream = line.stream,
                      .text = std::move(line.text),
                      .partial = line.partial});
  }
  std::vector<FollowItem> Take() { return std::move(items_); }

 private:
  Cursor cursor_;
  std::vector<FollowItem> items_;
};

// The end comes after every line; what else the job went through comes in its place.
FollowResult MergeByTime(const Cursor& from, const std::vector<store::Event>& events,
                         std::vector<LogLine> lines, bool more_lines) {
  Merge merge(from);
  size_t next = 0;
  const auto tell_until = [&](absl::Time time) {
    while (next < events.size() && events[next].time <= time && !IsEnd(events[next].state)) {
      merge.Event(events[next++]);
    }
  };
  const bool any_lines = !lines.empty();
  for (LogLine& line : lines) {
    tell_until(line.time);
    merge.Line(std::move(line));
  }
  if (!more_lines) tell_until(absl::InfiniteFuture());
  FollowResult result;
  if (!any_lines && next < events.size()) merge.Event(events[next++]);
  result.items = merge.Take();
  result.ended = !result.items.empty() && result.items.back().event.has_value() &&
                 IsEnd(result.items.back().event->state);
  return result;
}

}  // namespace

absl::StatusOr<FollowResult> ServiceCore::Follow(absl::string_view id, absl::string_view cursor,
                                                 base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const Cursor from, CursorFromString(cursor));
  while (true) {
    std::shared_ptr<Bell> bell;
    std::shared_ptr<JobLogs> logs;
    store::Event last;
    int64_t rings = 0;
    bool stopping = false;
    {
      absl::MutexLock lock(&mutex_);
      stopping = stopping_;
      if (const auto live = live_.find(id); live != live_.end()) {
        bell = live->second->bell;
        rings = bell->rings();
        logs = live->second->logs;
        last = live->second->record.last;
      }
    }
    if (bell == nullptr) {
      TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(id));
      last = record.last;
      if (IsEnd(last.state)) {
        TUTTI_ASSIGN_OR_RETURN(logs, JobLogs::OpenToRead(files_.FolderOf(id) / "logs"));
      }
    }
    // Events before lines: the log is closed before the end is written, so an end that is read here
    // has all of its lines behind it.
    std::vector<store::Event> events;
    if (last.sequence > from.event) {
      TUTTI_ASSIGN_OR_RETURN(events, store_->EventsOf(id, from.event));
    } else if (last.sequence < from.event) {
      return absl::InvalidArgumentError("the cursor is none of this job");
    }
    std::vector<LogLine> lines;
    if (logs != nullptr) {
      TUTTI_ASSIGN_OR_RETURN(lines, logs->Read(from.position, kBatchBytes));
    }
    size_t bytes = 0;
    for (const LogLine& line : lines) bytes += line.text.size() + 1;
    FollowResult result = MergeByTime(from, events, std::move(lines), bytes >= kBatchBytes);
    if (result.items.empty() && IsEnd(last.state)) result.ended = true;
    if (!result.items.empty() || result.ended || stopping || deadline.Expired()) return result;
    if (bell != nullptr) bell->WaitPast(rings, deadline);
  }
}

}  // namespace tutti::service
