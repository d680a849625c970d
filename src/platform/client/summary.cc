#include "platform/client/summary.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

// How long the job ran; "" if it never did.
std::string Duration(const JobView& job) {
  if (job.started.empty() || job.ended.empty()) return "";
  return Clock(ParseTime(job.ended) - ParseTime(job.started));
}

}  // namespace

std::string FailureLine(const FailureView& failure) {
  std::string line = failure.rank >= 0 ? absl::StrCat("rank ", failure.rank) : "";
  if (!failure.node.empty()) {
    absl::StrAppend(&line, line.empty() ? "node " : " on ", Printable(failure.node));
  }
  return absl::StrCat(line, ": ", Printable(failure.what),
                      failure.consequence ? " (a consequence)" : "");
}

std::vector<std::string> Summary(const JobView& job, const std::optional<Metric>& result) {
  std::string first = job.state;
  const std::string duration = Duration(job);
  if (!duration.empty()) {
    absl::StrAppend(&first, job.state == "Completed" ? " in " : " after ", duration);
  }
  std::vector<std::string> lines;
  if (job.state == "Completed") {
    if (result.has_value()) absl::StrAppend(&first, ", ", MetricLine(*result));
    lines = {first, absl::StrCat("Outputs and logs: tutti job download ", job.id)};
  } else {
    // "Canceled: canceled" says nothing.
    if (!job.reason.empty() && !absl::EqualsIgnoreCase(job.reason, job.state)) {
      absl::StrAppend(&first, ": ", Printable(job.reason));
    }
    lines = {first};
    for (size_t i = 1; i < job.failures.size(); ++i) {
      lines.push_back(absl::StrCat("  ", FailureLine(job.failures[i])));
    }
    // A job that failed while it started has logs, too.
    if (!duration.empty() || !job.failures.empty())
      lines.push_back(absl::StrCat("Logs: tutti job download ", job.id));
  }
  return lines;
}

}  // namespace tutti::client
