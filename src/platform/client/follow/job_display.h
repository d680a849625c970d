// JobDisplay prints a running job: its states with reasons, its output by rank, its progress. Fed
// with the lines of the job's stream, in order; knows nothing of the network. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "platform/client/connection/views.h"
#include "platform/client/follow/metric_line.h"
#include "platform/client/text/live_text.h"

namespace tutti::client {

struct DisplayOptions {
  int only_rank = -1;        // output of this rank only; -1: of all
  bool only_stderr = false;  // output written to standard error only
  bool only_stdout = false;  // output written to standard output only
  bool states = true;
  bool prefix = true;    // "[1] " before output; "[1!] " where it is standard error
  bool metrics = true;   // progress, evaluations; else metrics are left out
  bool progress = true;  // the steps among them
  absl::TimeZone time_zone = absl::LocalTimeZone();
  // Between progress lines where there is no bar. For as long after a line of output metrics are
  // not put into words either: most programs that write them print the same themselves.
  absl::Duration plain_interval = absl::Seconds(5);
};

class JobDisplay {
 public:
  JobDisplay(LiveText* text, DisplayOptions options) : text_(*text), options_(options) {}

  // `now` drives the bar's countdown and the interval of plain progress lines.
  void Line(const FollowLine& line, absl::Time now);
  // Returns whether the job waits, as far as its lines have said.
  bool queued() const { return last_state_ == "Queued"; }
  // Shows what a queued job waits for just now, and when it may start, if that is known. Shown in
  // place on a terminal, elsewhere as a line when the reason is a new one.
  void Waiting(const spec::BriefJobView& job, absl::Time now);
  // Redraws what changes with time, and writes everything out: of lines that their programs draw
  // anew a terminal has each rank's last state, a pipe at most one a second, and the last.
  void Refresh(absl::Time now);
  // Shows a remark of the client itself, between the job's lines.
  void Remark(absl::string_view remark);
  // Takes what changes away for good.
  void End();

  const std::optional<Metric>& result() const { return result_; }

 private:
  // RedrawnLine is a line that its program draws anew, by carriage returns: a progress bar.
  struct RedrawnLine {
    std::string prefix;
    std::string text;
    bool shown = false;                            // on a pipe: this text has been printed
    absl::Time printed_at = absl::InfinitePast();  // on a pipe
  };
  void State(const FollowLine& line);
  // Returns whether output of this kind is asked for.
  bool Wants(const FollowLine& line) const;
  std::string PrefixOf(const FollowLine& line) const;
  void PrintOutput(absl::string_view prefix, absl::string_view text);
  // Takes a piece of a line that is drawn anew; false if it is no such line.
  bool Redraw(const FollowLine& line);
  // Prints what lines came to that are not drawn any more.
  void EndRedrawn();
  void PrintRedrawn(RedrawnLine& redrawn, absl::Time now);
  // Returns the lines that a terminal shows below those that stay.
  std::string Status(absl::Time now) const;
  void Output(const FollowLine& line, absl::Time now);
  void OnMetric(const Metric& metric, absl::Time now);

  LiveText& text_;
  const DisplayOptions options_;
  std::string last_state_;
  std::string waiting_;         // the last reason; "" once it does not wait
  std::string waiting_status_;  // with the time to the expected start
  std::map<std::pair<int, std::string>, RedrawnLine> redrawn_;  // by rank and stream
  // Ranks and streams whose line is too long for one piece. Its next pieces, of any length, are
  // printed as they come, and not drawn anew.
  std::set<std::pair<int, std::string>> long_lines_;
  std::optional<Metric> step_;  // the last one
  absl::Time step_at_ = absl::InfinitePast();
  absl::Time output_at_ = absl::InfinitePast();  // of the last line of output
  absl::Time plain_at_ = absl::InfinitePast();   // of the last plain progress line
  std::optional<Metric> result_;
};

}  // namespace tutti::client
