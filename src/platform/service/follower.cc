#include "platform/service/follower.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kBatchBytes = 1 << 20;

void NotifyOf(const LiveJob& job) {
  job.news->Notify();
  job.steps->Notify();
}

// Returns "17-204-33".
std::string ToString(const Cursor& cursor) {
  return absl::StrCat(cursor.event, "-", cursor.position.record, "-", cursor.position.offset);
}

// Reads a cursor; "" is the beginning. InvalidArgument for what ToString never makes.
absl::StatusOr<Cursor> CursorFromString(absl::string_view text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  const bool valid = parts.size() == 3 && absl::SimpleAtoi(parts[0], &cursor.event) &&
                     absl::SimpleAtoi(parts[1], &cursor.position.record) &&
                     absl::SimpleAtoi(parts[2], &cursor.position.offset) && cursor.event >= 0 &&
                     ToString(cursor) == text;
  if (valid) return cursor;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text.substr(0, 80), "\" is no cursor: send one that a stream line had"));
}

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
  // Returns the cursor that stands behind what was told, at that position of the lines.
  std::string CursorAt(LogPosition position) const {
    return ToString(Cursor{.event = cursor_.event, .position = position});
  }
  std::vector<FollowItem> Take() { return std::move(items_); }

 private:
  Cursor cursor_;
  std::vector<FollowItem> items_;
};

// Returns the event of a line of metrics; "" for one of values alone, as most scripts write them. A
// million lines take as long as the look at their text.
absl::string_view EventOf(absl::string_view line) {
  const size_t event = line.find("\"event\"");
  if (event == absl::string_view::npos) return "";
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line.substr(event + 7));
  if (!absl::ConsumePrefix(&rest, ":")) return "";
  rest = absl::StripLeadingAsciiWhitespace(rest);
  return absl::ConsumePrefix(&rest, "\"") ? rest.substr(0, rest.find('"')) : "";
}

// Leaves out what ranks report but for what FollowFilter tells of.
void LeaveOutReports(std::vector<LogLine>& lines) {
  static constexpr absl::string_view kTold[] = {"start", "evaluation", "checkpoint", "result"};
  const auto is_step = [](const LogLine& line) {
    return line.stream == LogStream::kMetrics && EventOf(line.text) == "step";
  };
  const auto last = std::find_if(lines.rbegin(), lines.rend(), is_step);
  const LogPosition last_step = last == lines.rend() ? LogPosition() : last->next;
  std::erase_if(lines, [&](const LogLine& line) {
    if (line.stream == LogStream::kMlflow) return true;
    if (line.stream != LogStream::kMetrics || line.next == last_step) return false;
    return std::ranges::find(kTold, EventOf(line.text)) == std::end(kTold);
  });
}

// The end comes after every line; what else the job went through comes in its place. `end`: up to
// where lines were read, of which some may have been left out.
FollowResult MergeByTime(const Cursor& from, const std::vector<store::Event>& events,
                         std::vector<LogLine> lines, bool more_lines, LogPosition end) {
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
  if (!any_lines && !more_lines && next < events.size()) merge.Event(events[next++]);
  FollowResult result{.cursor = merge.CursorAt(end)};
  result.items = merge.Take();
  result.more = more_lines || next < events.size();
  if (!result.items.empty()) {
    const std::optional<store::Event>& last = result.items.back().event;
    result.ended = last.has_value() && IsEnd(last->state);
  }
  return result;
}

// Merges a page that is read backwards. What happened before its first line belongs to the page
// before it, if there is one.
LinesPage MergeBack(std::vector<store::Event> events, LogPage lines) {
  Cursor from{.position = lines.begin};
  const bool begins = lines.begin.record == 0 && lines.begin.offset == 0;
  const auto is_before = [&](const store::Event& event) {
    return !lines.lines.empty() && event.time <= lines.lines.front().time && !IsEnd(event.state);
  };
  size_t passed = 0;
  while (!begins && passed < events.size() && is_before(events[passed])) {
    from.event = events[passed++].sequence;
  }
  events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(passed));
  LinesPage page{.before = begins ? "" : ToString(from)};
  FollowResult merged =
      MergeByTime(from, events, std::move(lines.lines), /*more_lines=*/false, lines.begin);
  page.items = std::move(merged.items);
  if (merged.more) {  // the end comes by itself
    Merge end(CursorFromString(page.items.back().cursor).value());
    end.Event(events.back());
    page.items.push_back(end.Take().front());
  }
  return page;
}

// 0: it tells of none.
int64_t LastEventOf(const FollowResult& result, const store::Event& last) {
  if (result.ended) return last.sequence;
  int64_t sequence = 0;
  for (const FollowItem& item : result.items) {
    if (item.event) sequence = std::max(sequence, item.event->sequence);
  }
  return sequence;
}

}  // namespace

void Follower::OnEvent(const store::Job& job, const store::Event&, const EventDetail&) {
  if (const LiveJob* const live = table_.Find(job.id)) NotifyOf(*live);
}

void Follower::WakeAll() {
  for (const auto& [id, job] : table_.live()) NotifyOf(*job);
}

absl::StatusOr<Subscription> Follower::OnNewsOf(absl::string_view id, std::function<void()> wake) {
  {
    StateLock lock(state_);
    insertions_.Await(id);
    if (const LiveJob* const live = table_.Find(id)) return live->news->Subscribe(std::move(wake));
  }
  TUTTI_RETURN_IF_ERROR(state_.store->GetJob(id).status());
  return Subscription();
}

absl::StatusOr<Follower::Watched> Follower::Watch(absl::string_view id) {
  Watched job;
  {
    StateLock lock(state_);
    insertions_.Await(id);
    job.stopping = state_.stopping;
    if (const LiveJob* const live = table_.Find(id)) {
      job.news = live->news;
      job.seen = job.news->count();
      if (live->placed != nullptr) job.logs = live->placed->logs;
      job.last = live->record.last;
      return job;
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
  job.last = record.last;
  if (IsEnd(job.last.state)) {
    TUTTI_ASSIGN_OR_RETURN(job.logs, JobLogs::OpenToRead(state_.files.FolderOf(id) / "logs"));
  }
  return job;
}

absl::StatusOr<FollowResult> Follower::WhatFollows(absl::string_view id, const Watched& job,
                                                   const Cursor& from,
                                                   const FollowFilter& filter) const {
  // Events before lines: the log is closed before the end is written, so an end that is read here
  // has all of its lines behind it.
  std::vector<store::Event> events;
  if (job.last.sequence > from.event) {
    TUTTI_ASSIGN_OR_RETURN(events, state_.store->EventsOf(id, from.event));
  }
  std::vector<LogLine> lines;
  if (job.logs != nullptr) {
    TUTTI_ASSIGN_OR_RETURN(lines, job.logs->Read(from.position, kBatchBytes));
  }
  size_t bytes = 0;
  for (const LogLine& line : lines) bytes += line.text.size() + 1;
  const LogPosition end = lines.empty() ? from.position : lines.back().next;
  if (!filter.reports) LeaveOutReports(lines);
  FollowResult result = MergeByTime(from, events, std::move(lines), bytes >= kBatchBytes, end);
  if (result.items.empty() && !result.more && IsEnd(job.last.state)) result.ended = true;
  return result;
}

absl::StatusOr<LinesPage> Follower::LinesBefore(absl::string_view id, absl::string_view before,
                                                int limit) {
  TUTTI_ASSIGN_OR_RETURN(const Cursor to, CursorFromString(before));
  TUTTI_ASSIGN_OR_RETURN(const Watched job, Watch(id));
  // Events before lines, as in WhatFollows.
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::Event> events, state_.store->EventsOf(id));
  LogPage lines;
  if (before.empty()) {
    if (!events.empty()) TUTTI_RETURN_IF_ERROR(AwaitDurable(state_, events.back().sequence));
  } else {
    std::erase_if(events, [&](const store::Event& event) { return event.sequence > to.event; });
  }
  if (job.logs != nullptr) {
    const auto position = before.empty() ? std::nullopt : std::optional(to.position);
    TUTTI_ASSIGN_OR_RETURN(lines, job.logs->ReadBack(position, limit, kBatchBytes));
  }
  return MergeBack(std::move(events), std::move(lines));
}

absl::StatusOr<FollowResult> Follower::Follow(absl::string_view id, absl::string_view cursor,
                                              base::Deadline deadline, const FollowFilter& filter) {
  TUTTI_ASSIGN_OR_RETURN(const Cursor from, CursorFromString(cursor));
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const Watched job, Watch(id));
    TUTTI_ASSIGN_OR_RETURN(FollowResult result, WhatFollows(id, job, from, filter));
    TUTTI_RETURN_IF_ERROR(AwaitDurable(state_, LastEventOf(result, job.last)));
    const bool is_news = !result.items.empty() || result.ended || result.more;
    if (is_news || job.stopping || deadline.Expired()) return result;
    if (job.news != nullptr) job.news->WaitPast(job.seen, deadline);
  }
}

}  // namespace tutti::service
