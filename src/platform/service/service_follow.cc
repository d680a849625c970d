// How a follower is told what happened: state changes from the store, lines from the logs, merged
// by time. The cursor says what it has been told; nothing is kept for it in between.
#include "base/status.h"
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
  if (!result.items.empty()) {
    const std::optional<store::Event>& last = result.items.back().event;
    result.ended = last.has_value() && IsEnd(last->state);
  }
  return result;
}

}  // namespace

absl::StatusOr<ServiceCore::Watched> ServiceCore::Watch(absl::string_view id) {
  Watched job;
  {
    absl::MutexLock lock(&mutex_);
    AwaitInsert(id);
    job.stopping = stopping_;
    if (const auto live = live_.find(id); live != live_.end()) {
      job.bell = live->second->bell;
      job.rings = job.bell->rings();
      if (live->second->placed != nullptr) job.logs = live->second->placed->logs;
      job.last = live->second->record.last;
      return job;
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(id));
  job.last = record.last;
  if (IsEnd(job.last.state)) {
    TUTTI_ASSIGN_OR_RETURN(job.logs, JobLogs::OpenToRead(files_.FolderOf(id) / "logs"));
  }
  return job;
}

absl::StatusOr<FollowResult> ServiceCore::WhatFollows(absl::string_view id, const Watched& job,
                                                      const Cursor& from) {
  // Events before lines: the log is closed before the end is written, so an end that is read here
  // has all of its lines behind it.
  std::vector<store::Event> events;
  if (job.last.sequence > from.event) {
    TUTTI_ASSIGN_OR_RETURN(events, store_->EventsOf(id, from.event));
  }
  std::vector<LogLine> lines;
  if (job.logs != nullptr) {
    TUTTI_ASSIGN_OR_RETURN(lines, job.logs->Read(from.position, kBatchBytes));
  }
  size_t bytes = 0;
  for (const LogLine& line : lines) bytes += line.text.size() + 1;
  FollowResult result = MergeByTime(from, events, std::move(lines), bytes >= kBatchBytes);
  if (result.items.empty() && IsEnd(job.last.state)) result.ended = true;
  return result;
}

absl::StatusOr<FollowResult> ServiceCore::Follow(absl::string_view id, absl::string_view cursor,
                                                 base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const Cursor from, CursorFromString(cursor));
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const Watched job, Watch(id));
    TUTTI_ASSIGN_OR_RETURN(FollowResult result, WhatFollows(id, job, from));
    if (!result.items.empty() || result.ended || job.stopping || deadline.Expired()) return result;
    if (job.bell != nullptr) job.bell->WaitPast(job.rings, deadline);
  }
}

}  // namespace tutti::service
