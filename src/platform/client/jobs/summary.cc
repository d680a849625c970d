#include "platform/client/jobs/summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr size_t kMostLogged = 8;      // metrics, and models, that are named briefly
constexpr size_t kMostNotes = 5;       // of children
constexpr size_t kLongestBrief = 100;  // of the line of metrics, but for a first one that is longer

// All, or the first few and how to see those beyond.
std::string Listed(std::vector<std::string> texts, Extent extent, absl::string_view job_id) {
  const size_t shown = extent == Extent::kAll ? texts.size() : std::min(texts.size(), kMostLogged);
  const size_t more = texts.size() - shown;
  texts.resize(shown);
  return absl::StrCat(
      absl::StrJoin(texts, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more: tutti job show ", job_id, " --all") : "");
}

// Returns how long the job ran; "" if it never did.
std::string Duration(const JobView& job) {
  if (job.started.empty() || job.ended.empty()) return "";
  return Clock(ParseTime(job.ended) - ParseTime(job.started));
}

// Returns where to look for what the job has left. The children of a pipeline or a sweep have its
// logs.
std::vector<std::string> WhereItLies(const JobView& job, const KeptFiles& kept) {
  const auto offer = [](absl::string_view what, absl::string_view arguments) {
    return absl::StrCat(what, ": tutti job download ", arguments);
  };
  std::vector<std::string> lines;
  const char* const own = kept.outputs && kept.logs ? "Outputs and logs"
                          : kept.outputs            ? "Outputs"
                                                    : "Logs";
  if (kept.outputs || kept.logs) lines.push_back(offer(own, job.id));
  if (job.type == "command") return lines;
  const std::string failed = FailedJob(job);
  if (!failed.empty() && kept.of_failed) lines.push_back(offer("Logs", failed));
  if (failed.empty() ? kept.of_children : kept.of_completed) {
    lines.push_back(offer(absl::StrCat("All of its ", job.type == "sweep" ? "trials" : "steps"),
                          absl::StrCat(job.id, " --all")));
  }
  return lines;
}

// The service puts its remark behind the reason: "…; note: …".
std::pair<std::string, std::string> ReasonAndNote(const std::string& reason) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(reason, absl::MaxSplits("; note: ", 1));
  return parts;
}

std::string MetricText(const LoggedMetricView& metric) {
  const std::string name = Printable(metric.name);
  if (metric.value) return absl::StrFormat("%s %.6g", name, *metric.value);
  if (metric.not_finite.empty()) return absl::StrCat(name, " no finite number");
  return absl::StrCat(name, " ", Printable(metric.not_finite), " at step ", metric.step);
}

std::string Metrics(const JobView& job) {
  return absl::StrJoin(job.logged.metrics, ", ",
                       [](std::string* out, const LoggedMetricView& metric) {
                         absl::StrAppend(out, MetricText(metric));
                       });
}

std::string More(const JobView& job, size_t count) {
  return absl::StrCat("and ", count, " more: tutti job show ", job.id);
}

// Adds what there is to know about each child and its children, by their names below the job:
// "tune.trial-1".
void AddNotes(const std::vector<ChildView>& children, const std::string& above,
              std::vector<std::string>& notes) {
  for (const ChildView& child : children) {
    const std::string name = absl::StrCat(above, Printable(child.step));
    const std::string note = ReasonAndNote(child.reason).second;
    if (!note.empty()) notes.push_back(absl::StrCat(name, ": ", Printable(note)));
    AddNotes(child.children, absl::StrCat(name, "."), notes);
  }
}

// The first of them.
std::string Brief(const JobView& job) {
  std::vector<std::string> texts;
  size_t width = 0;
  for (const LoggedMetricView& metric : job.logged.metrics) {
    std::string text = MetricText(metric);
    width += text.size() + 2;
    if (!texts.empty() && (texts.size() == kMostLogged || width > kLongestBrief)) break;
    texts.push_back(std::move(text));
  }
  const size_t left = job.logged.metrics.size() - texts.size();
  return absl::StrCat(absl::StrJoin(texts, ", "),
                      left > 0 ? absl::StrCat(" ", More(job, left)) : "");
}

}  // namespace

std::string FailureLine(const FailureView& failure) {
  std::string line = failure.rank ? absl::StrCat("rank ", *failure.rank) : "";
  if (!failure.node.empty()) {
    absl::StrAppend(&line, line.empty() ? "node " : " on ", Printable(failure.node));
  }
  return absl::StrCat(line, ": ", Printable(failure.what),
                      failure.consequence ? " (a consequence)" : "");
}

std::string MetricsText(const std::vector<LoggedMetricView>& metrics, Extent extent,
                        absl::string_view job_id) {
  std::vector<std::string> texts;
  for (const LoggedMetricView& metric : metrics) texts.push_back(MetricText(metric));
  return Listed(std::move(texts), extent, job_id);
}

std::string ArtifactsText(const std::vector<LoggedFileView>& artifacts, Extent extent,
                          absl::string_view job_id) {
  std::vector<std::string> texts;
  for (const LoggedFileView& artifact : artifacts) texts.push_back(Printable(artifact.name));
  return Listed(std::move(texts), extent, job_id);
}

std::string ParamsText(const std::vector<LoggedParamView>& params, Extent extent,
                       absl::string_view job_id) {
  std::vector<std::string> texts;
  for (const LoggedParamView& param : params) {
    texts.push_back(absl::StrCat(Printable(param.name), " ", Printable(param.value)));
  }
  return Listed(std::move(texts), extent, job_id);
}

std::vector<std::pair<std::string, std::string>> LoggedFacts(const JobView& job, Extent extent) {
  std::vector<std::pair<std::string, std::string>> facts;
  const bool brief = extent == Extent::kBrief;
  if (!job.logged.metrics.empty()) facts.emplace_back("Metrics", brief ? Brief(job) : Metrics(job));
  size_t left = brief ? kMostLogged : job.logged.models.size();
  for (const LoggedFileView& model : job.logged.models) {
    if (left-- == 0) break;
    facts.emplace_back(absl::StrCat("Model ", Printable(model.name)), Printable(model.path));
  }
  if (brief && job.logged.models.size() > kMostLogged) {
    facts.emplace_back("Models", More(job, job.logged.models.size() - kMostLogged));
  }
  return facts;
}

std::vector<std::string> RemovedLines(const JobView& job) {
  std::vector<std::string> lines;
  for (const spec::RemovedView& files : job.removed) {
    lines.push_back(absl::StrCat(Printable(files.kind), ", on ",
                                 Printable(files.time.substr(0, files.time.find('T'))),
                                 " by the site's retention"));
  }
  return lines;
}

std::string StoredLogsLine(const JobView& job) {
  if (!job.stored_logs) return "";
  const auto& [place, state, reason, time] = *job.stored_logs;
  const std::string why = reason.empty() ? "" : absl::StrCat(": ", reason);
  if (state == "stored")
    return absl::StrCat(place, reason.empty() ? "" : absl::StrCat(" (", reason, ")"));
  if (state == "given_up") return absl::StrCat("not in ", place, why);
  if (!job.ended_already()) return absl::StrCat("to ", place, " once the job has ended");
  return absl::StrCat("not yet in ", place,
                      reason.empty() ? "" : absl::StrCat(why, "; tried again"));
}

std::vector<std::string> NotesOfChildren(const JobView& job, Extent extent) {
  std::vector<std::string> notes;
  AddNotes(job.children, "", notes);
  if (extent == Extent::kBrief && notes.size() > kMostNotes) {
    const size_t more = notes.size() - kMostNotes;
    notes.resize(kMostNotes);
    notes.push_back(absl::StrCat(More(job, more), " --all"));
  }
  return notes;
}

std::vector<std::string> NotesOf(const JobView& job, Extent extent) {
  std::vector<std::string> notes = NotesOfChildren(job, extent);
  const std::string own = ReasonAndNote(job.reason).second;
  if (!own.empty()) notes.insert(notes.begin(), Printable(own));
  return notes;
}

std::vector<std::string> Summary(const JobView& job, const std::optional<Metric>& result,
                                 const KeptFiles& kept) {
  std::string first = job.state;
  const std::string duration = Duration(job);
  if (!duration.empty()) {
    absl::StrAppend(&first, job.state == "Completed" ? " in " : " after ", duration);
  }
  const std::string reason = ReasonAndNote(job.reason).first;
  if (job.state == "Completed") {
    if (result.has_value()) absl::StrAppend(&first, ", ", MetricLine(*result));
  } else if (!reason.empty() && !absl::EqualsIgnoreCase(reason, job.state)) {
    // "Canceled: canceled" says nothing.
    absl::StrAppend(&first, ": ", Printable(reason));
  }
  std::vector<std::string> lines = {first};
  for (size_t i = 1; i < job.failures.size(); ++i) {
    lines.push_back(absl::StrCat("  ", FailureLine(job.failures[i])));
  }
  for (const std::string& note : NotesOf(job, Extent::kBrief)) {
    lines.push_back(absl::StrCat("Note: ", note));
  }
  for (const auto& [name, value] : LoggedFacts(job, Extent::kBrief)) {
    lines.push_back(absl::StrCat(name, ": ", value));
  }
  for (std::string& line : WhereItLies(job, kept)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tutti::client
