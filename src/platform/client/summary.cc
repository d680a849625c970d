#include "platform/client/summary.h"

#include <utility>

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

// The first job that failed among them and theirs; "" if none did.
std::string FailedJob(const std::vector<ChildView>& children) {
  for (const ChildView& child : children) {
    if (child.state != "Failed") continue;
    const std::string own = FailedJob(child.children);
    return own.empty() ? child.id : own;
  }
  return "";
}

// Where to look for what the job has left. The children of a pipeline or a sweep have the logs.
std::vector<std::string> WhereItLies(const JobView& job) {
  if (job.type == "command") {
    return {absl::StrCat(job.state == "Completed" ? "Outputs and logs" : "Logs",
                         ": tutti job download ", job.id)};
  }
  const std::string failed = FailedJob(job.children);
  if (!failed.empty()) return {absl::StrCat("Logs: tutti job download ", failed)};
  std::vector<std::string> lines;
  if (job.state == "Completed") {
    lines.push_back(absl::StrCat("Outputs: tutti job download ", job.id));
  }
  lines.push_back(absl::StrCat("Logs: of its ", job.type == "sweep" ? "trials" : "steps",
                               ", which tutti job show ", job.id, " names"));
  return lines;
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
    lines = {first};
  } else {
    // "Canceled: canceled" says nothing.
    if (!job.reason.empty() && !absl::EqualsIgnoreCase(job.reason, job.state)) {
      absl::StrAppend(&first, ": ", Printable(job.reason));
    }
    lines = {first};
    for (size_t i = 1; i < job.failures.size(); ++i) {
      lines.push_back(absl::StrCat("  ", FailureLine(job.failures[i])));
    }
  }
  // A job that failed while it started has logs, too.
  if (job.state == "Completed" || !duration.empty() || !job.failures.empty()) {
    for (std::string& line : WhereItLies(job)) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tutti::client
