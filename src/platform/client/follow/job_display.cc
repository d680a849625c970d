#include "platform/client/follow/job_display.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/client/follow/progress_bar.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kRedrawnInterval = absl::Seconds(1);  // of a redrawn line, on a pipe
constexpr size_t kMostRedrawn = 8;                             // lines on a terminal
// No bar has as many bytes. The service cuts a longer line into pieces of 64 KiB, less a carriage
// return and up to three bytes of a character that did not fit.
constexpr size_t kLongLine = (64 << 10) - 4;

// Returns what of a redrawn line matters for what comes next.
std::string Redrawn(const std::string& text) {
  return absl::StrCat(LastDrawn(text), text.ends_with('\r') ? "\r" : "");
}

}  // namespace

void JobDisplay::Line(const FollowLine& line, absl::Time now) {
  if (line.kind == FollowLine::Kind::kState) {
    State(line);
  } else if (line.stream == "metrics") {
    if (!options_.metrics) return;
    if (const auto metric = ParseMetric(line.text); metric.has_value()) OnMetric(*metric, now);
  } else if (line.stream == "stdout" || line.stream == "stderr" || line.stream == "mpirun") {
    Output(line, now);
  }
}

void JobDisplay::State(const FollowLine& line) {
  EndRedrawn();
  waiting_.clear();
  if (!waiting_status_.empty()) text_.SetStatus("");
  waiting_status_.clear();
  if (!options_.states) {
    last_state_ = line.state;
    return;
  }
  const absl::Time time = ParseTime(line.time);
  const bool colour = text_.screen().colour;
  const std::string clock =
      time == absl::InfinitePast() ? "" : absl::FormatTime("%H:%M:%S ", time, options_.time_zone);
  // The same state with a new reason: the reader knows the state.
  const bool repeated = line.state == last_state_;
  last_state_ = line.state;
  std::string state = repeated ? "" : Printable(line.state);
  if (!line.reason.empty()) state = PadRight(state, 12);
  text_.Print(absl::StrCat(Styled(clock, Tint::kDim, colour),
                           Styled(state, repeated ? Tint::kNone : TintOfState(line.state), colour),
                           line.reason.empty() ? "" : " ", Printable(line.reason)));
}

bool JobDisplay::Wants(const FollowLine& line) const {
  const bool is_mpirun = line.stream == "mpirun";  // no rank's
  const bool is_error = line.stream == "stderr";
  if (options_.only_rank >= 0 && (is_mpirun || line.rank != options_.only_rank)) return false;
  if (options_.only_stderr && !is_error && !is_mpirun) return false;
  return !options_.only_stdout || (!is_error && !is_mpirun);
}

std::string JobDisplay::PrefixOf(const FollowLine& line) const {
  if (!options_.prefix) return "";
  const bool is_mpirun = line.stream == "mpirun";
  const bool is_error = line.stream == "stderr";
  const std::string who =
      is_mpirun ? "[mpirun]" : absl::StrCat("[", line.rank, is_error ? "!" : "", "]");
  const Tint tint = is_mpirun ? Tint::kDim : is_error ? Tint::kRed : TintOfRank(line.rank);
  return absl::StrCat(Styled(who, tint, text_.screen().colour), " ");
}

void JobDisplay::Output(const FollowLine& line, absl::Time now) {
  output_at_ = now;
  if (!Wants(line) || Redraw(line)) return;
  PrintOutput(PrefixOf(line), line.text);
}

// A file keeps every byte; a terminal gets what cannot steer it.
void JobDisplay::PrintOutput(absl::string_view prefix, absl::string_view text) {
  text_.Print(
      absl::StrCat(prefix, text_.screen().is_terminal ? TerminalLine(text) : std::string(text)));
}

bool JobDisplay::Redraw(const FollowLine& line) {
  const std::pair<int, std::string> key(line.rank, line.stream);
  if (long_lines_.contains(key)) {
    if (!line.partial) long_lines_.erase(key);
    return false;
  }
  auto found = redrawn_.find(key);
  if (found == redrawn_.end()) {
    if (!line.partial && !absl::StrContains(line.text, '\r')) return false;
    if (!line.partial) {  // it came whole
      PrintOutput(PrefixOf(line), LastDrawn(line.text));
      return true;
    }
    if (LastDrawn(line.text).size() >= kLongLine) {
      long_lines_.insert(key);
      return false;
    }
    found = redrawn_.emplace(key, RedrawnLine{.prefix = PrefixOf(line)}).first;
  }
  RedrawnLine& redrawn = found->second;
  const std::string before(LastDrawn(redrawn.text));
  redrawn.text = Redrawn(absl::StrCat(redrawn.text, line.text));
  if (LastDrawn(redrawn.text) != before) redrawn.shown = false;
  const bool is_long = redrawn.text.size() >= kLongLine;
  if (line.partial && is_long) long_lines_.insert(key);
  if (!line.partial || is_long) {
    PrintRedrawn(redrawn, absl::InfiniteFuture());
    redrawn_.erase(found);
  }
  return true;
}

void JobDisplay::PrintRedrawn(RedrawnLine& redrawn, absl::Time now) {
  const absl::string_view text = LastDrawn(redrawn.text);
  if (redrawn.shown || now - redrawn.printed_at < kRedrawnInterval) return;
  redrawn.shown = true;
  redrawn.printed_at = now;
  // A bar that clears itself leaves an empty line, which is not printed.
  if (!absl::StripAsciiWhitespace(text).empty()) PrintOutput(redrawn.prefix, text);
}

void JobDisplay::EndRedrawn() {
  for (auto& [key, redrawn] : redrawn_) PrintRedrawn(redrawn, absl::InfiniteFuture());
  redrawn_.clear();
  long_lines_.clear();
}

void JobDisplay::OnMetric(const Metric& metric, absl::Time now) {
  const bool silent = now - output_at_ >= options_.plain_interval;
  if (metric.event == Metric::Event::kResult) {
    result_ = metric;
  } else if (metric.event != Metric::Event::kStep) {
    if (silent) text_.Print(absl::StrCat("    ", MetricLine(metric)));
  } else if (options_.progress) {
    step_ = metric;
    step_at_ = now;
    if (text_.screen().is_terminal || !silent) return;
    const bool last = metric.step.has_value() && metric.step == metric.steps;
    if (!last && now - plain_at_ < options_.plain_interval) return;
    plain_at_ = now;
    text_.Print(absl::StrCat("    ", PlainProgressLine(metric)));
  }
}

void JobDisplay::Waiting(const spec::BriefJobView& job, absl::Time now) {
  const std::string& reason = job.reason;
  if (!options_.states || reason.empty()) return;
  const absl::Time start = ParseTime(job.expected_start);
  waiting_status_ = Printable(reason);
  if (start != absl::InfinitePast()) {
    const bool is_latest = job.expected_start_is == "latest";
    absl::StrAppend(&waiting_status_, " · starts in ", is_latest ? "" : "about ", Age(start - now),
                    is_latest ? " at the latest" : "");
  }
  if (!text_.screen().is_terminal && reason != waiting_) {
    text_.Print(absl::StrCat("    ", waiting_status_));
  }
  waiting_ = reason;
}

std::string JobDisplay::Status(absl::Time now) const {
  const int width = text_.screen().width - 1;
  std::vector<std::string> lines;
  for (const auto& [key, redrawn] : redrawn_) {
    if (lines.size() == kMostRedrawn) break;
    const std::string text = TerminalLine(redrawn.text, /*colours=*/false);
    // The prefix has colours, which take no columns.
    const int prefix = options_.prefix ? Columns(TerminalLine(redrawn.prefix, false)) : 0;
    lines.push_back(absl::StrCat(redrawn.prefix, Shorten(text, width - prefix)));
  }
  if (redrawn_.size() > lines.size()) {
    lines.push_back(absl::StrCat("… and ", redrawn_.size() - lines.size(), " more"));
  }
  if (!waiting_status_.empty()) lines.push_back(Shorten(waiting_status_, width));
  if (step_.has_value()) lines.push_back(ProgressLine(*step_, now - step_at_, width));
  return absl::StrJoin(lines, "\n");
}

void JobDisplay::Refresh(absl::Time now) {
  const bool terminal = text_.screen().is_terminal;
  for (auto& [key, redrawn] : redrawn_) {
    if (!terminal) PrintRedrawn(redrawn, now);
  }
  text_.SetStatus(terminal ? Status(now) : "");
  text_.Flush();
}

void JobDisplay::Remark(absl::string_view remark) {
  text_.Print(Styled(remark, Tint::kYellow, text_.screen().colour));
  text_.Flush();
}

void JobDisplay::End() {
  EndRedrawn();
  step_.reset();
  text_.SetStatus("");
  text_.Flush();
}

}  // namespace tutti::client
