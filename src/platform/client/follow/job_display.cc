#include "platform/client/follow/job_display.h"

#include "absl/strings/str_cat.h"
#include "platform/client/follow/progress_bar.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {

void JobDisplay::Line(const FollowLine& line, absl::Time now) {
  if (line.kind == FollowLine::Kind::kState) {
    State(line);
  } else if (line.stream == "metrics") {
    if (!options_.metrics) return;
    if (const auto metric = ParseMetric(line.text); metric.has_value()) OnMetric(*metric, now);
  } else {
    Output(line, now);
  }
}

void JobDisplay::State(const FollowLine& line) {
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

void JobDisplay::Output(const FollowLine& line, absl::Time now) {
  output_at_ = now;
  const bool is_mpirun = line.stream == "mpirun";  // no rank's
  const bool is_error = line.stream == "stderr";
  if (options_.only_rank >= 0 && (is_mpirun || line.rank != options_.only_rank)) return;
  if (options_.only_stderr && !is_error && !is_mpirun) return;
  if (options_.only_stdout && (is_error || is_mpirun)) return;
  const bool colour = text_.screen().colour;
  std::string prefix;
  if (options_.prefix) {
    const std::string who =
        is_mpirun ? "[mpirun]" : absl::StrCat("[", line.rank, is_error ? "!" : "", "]");
    const Tint tint = is_mpirun ? Tint::kDim : is_error ? Tint::kRed : TintOfRank(line.rank);
    prefix = absl::StrCat(Styled(who, tint, colour), " ");
  }
  // A file keeps every byte; a terminal gets what cannot steer it.
  const bool terminal = text_.screen().is_terminal;
  text_.Print(absl::StrCat(prefix, terminal ? TerminalLine(line.text) : line.text));
}

void JobDisplay::OnMetric(const Metric& metric, absl::Time now) {
  const bool silent = now - output_at_ >= options_.plain_interval;
  if (metric.event == Metric::Event::kResult) {
    result_ = metric;
  } else if (metric.event != Metric::Event::kStep) {
    if (silent) text_.Print(absl::StrCat("    ", MetricLine(metric)));
  } else {
    step_ = metric;
    step_at_ = now;
    if (text_.screen().is_terminal || !silent) return;
    const bool last = metric.step.has_value() && metric.step == metric.steps;
    if (!last && now - plain_at_ < options_.plain_interval) return;
    plain_at_ = now;
    text_.Print(absl::StrCat("    ", PlainProgressLine(metric)));
  }
}

void JobDisplay::Waiting(const std::string& reason, const std::string& expected_start,
                         absl::Time now) {
  if (!options_.states || reason.empty()) return;
  const absl::Time start = ParseTime(expected_start);
  waiting_status_ = Printable(reason);
  if (start != absl::InfinitePast()) {
    absl::StrAppend(&waiting_status_, " · starts in about ", Age(start - now));
  }
  if (!text_.screen().is_terminal && reason != waiting_) {
    text_.Print(absl::StrCat("    ", waiting_status_));
  }
  waiting_ = reason;
}

void JobDisplay::Refresh(absl::Time now) {
  if (!waiting_status_.empty()) {
    text_.SetStatus(Shorten(waiting_status_, text_.screen().width - 1));
  }
  if (step_.has_value()) {
    text_.SetStatus(ProgressLine(*step_, now - step_at_, text_.screen().width - 1));
  }
  text_.Flush();
}

void JobDisplay::Remark(absl::string_view remark) {
  text_.Print(Styled(remark, Tint::kYellow, text_.screen().colour));
  text_.Flush();
}

void JobDisplay::End() {
  step_.reset();
  text_.SetStatus("");
  text_.Flush();
}

}  // namespace tutti::client
