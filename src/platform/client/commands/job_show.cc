#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/runs.h"
#include "platform/client/jobs/summary.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/node_parts.h"

namespace tutti::client {
namespace {

std::string LocalTime(const std::string& text) {
  const absl::Time time = ParseTime(text);
  if (time == absl::InfinitePast()) return "";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
}

// "name  value", unless there is no value.
void Fact(Context& context, absl::string_view name, absl::string_view value) {
  if (value.empty()) return;
  context.out << Styled(PadRight(name, 12), Tint::kBold, context.out_screen.colour) << " "
              << Printable(value) << "\n";
}

std::string NodesText(const JobView& job) {
  if (job.parts.empty()) return absl::StrJoin(job.nodes, " ");
  return absl::StrJoin(job.parts, " ", [](std::string* out, const PartView& part) {
    absl::StrAppend(out, PlaceText(part.node, part.cores, part.memory_bytes, part.gpus));
  });
}

void ShowFacts(Context& context, const JobView& job) {
  Fact(context, "Job", job.id);
  if (job.display_name != job.id) Fact(context, "Title", job.display_name);
  Fact(context, "Experiment", job.experiment_name);
  Fact(context, "Description", job.description.substr(0, job.description.find('\n')));
  Fact(context, "Tags", absl::StrJoin(job.tags, " "));
  Fact(context, "Environment", job.environment);
  Fact(context, "State", absl::StrCat(job.state, job.reason.empty() ? "" : ": ", job.reason));
  if (!job.expected_start.empty()) {
    const absl::Duration wait = ParseTime(job.expected_start) - absl::Now();
    Fact(context, "Starts",
         absl::StrCat("expected in ", Age(wait), ", at ", LocalTime(job.expected_start)));
  }
  Fact(context, "Created", LocalTime(job.created));
  Fact(context, "Started", LocalTime(job.started));
  Fact(context, "Ended", LocalTime(job.ended));
  if (!job.started.empty() && !job.ended.empty()) {
    Fact(context, "Ran", Clock(ParseTime(job.ended) - ParseTime(job.started)));
  }
  Fact(context, "Parent", job.parent);
  if (job.type != "command") return;
  Fact(context, "Compute",
       absl::StrCat(job.compute, job.compute.empty() ? "" : ", ", job.node_count,
                    job.node_count == 1 ? " node, " : " nodes, ", job.world_size,
                    job.world_size == 1 ? " process" : " processes"));
  if (job.part) {
    Fact(context, "Part",
         absl::StrCat(PartText(job.part->cpus, job.part->memory_bytes, job.part->gpu_count),
                      " of each node"));
  }
  Fact(context, "Nodes", NodesText(job));
  Fact(context, "Priority", job.priority);
}

// "0:12", or "" before it ran.
std::string Ran(const ChildView& child) {
  if (!child.reused_from.empty() || child.started.empty()) return "";
  const absl::Time end = child.ended.empty() ? absl::Now() : ParseTime(child.ended);
  return Clock(end - ParseTime(child.started));
}

constexpr size_t kMostAsked = 50;  // steps

using StepMetrics = std::map<std::string, std::string>;  // texts, by job

// What a pipeline's steps have logged. Trials have their metric, and a step that took an earlier
// job's results has them as its own; what cannot be asked is left out.
void AskSteps(ServiceClient& service, const std::vector<ChildView>& children, Extent extent,
              StepMetrics& texts) {
  for (const ChildView& child : children) {
    if (texts.size() >= kMostAsked) return;
    if (child.id.empty() || child.metric) continue;
    const auto text = service.Job(child.id);
    const auto job = text.ok() ? ParseJob(*text) : absl::StatusOr<JobView>(text.status());
    texts[child.id] = job.ok() ? MetricsText(job->metrics, extent, child.id) : "";
    AskSteps(service, child.children, extent, texts);
  }
}

// What there is to say of a child beside its state.
std::string Remark(const ChildView& child, const StepMetrics& metrics) {
  std::vector<std::string> parts;
  const auto logged = metrics.find(child.id);
  if (logged != metrics.end() && !logged->second.empty()) parts.push_back(logged->second);
  if (child.metric) parts.push_back(absl::StrFormat("%.6g", *child.metric));
  if (child.best) parts.push_back("best");
  if (!child.values.empty()) parts.push_back(absl::StrJoin(child.values, " "));
  const bool plain = child.state == "Completed" && child.reused_from.empty();
  if (child.state != "Waiting" && child.state != "NotStarted" &&
      (!plain || !child.children.empty())) {
    parts.push_back(child.reason);
  }
  return absl::StrJoin(parts, "  ");
}

size_t NameWidth(const std::vector<ChildView>& children, size_t depth) {
  size_t width = 0;
  for (const ChildView& child : children) {
    width = std::max({width, 3 * depth + child.step.size(), NameWidth(child.children, depth + 1)});
  }
  return width;
}

// One line for each child, those below it behind their branches.
void ShowTree(Context& context, const std::vector<ChildView>& children, const StepMetrics& metrics,
              const std::string& indent, int width) {
  const bool colour = context.out_screen.colour;
  for (size_t i = 0; i < children.size(); ++i) {
    const ChildView& child = children[i];
    const bool last = i + 1 == children.size();
    const std::string name = absl::StrCat(indent, last ? "└─ " : "├─ ", Printable(child.step));
    const std::string state = child.state == "NotStarted" ? "not started" : child.state;
    context.out << "  " << PadRight(name, width) << "  "
                << Styled(PadRight(Printable(state), 12), TintOfState(child.state), colour) << " "
                << PadLeft(Ran(child), 7) << "  " << Printable(Remark(child, metrics)) << "\n";
    ShowTree(context, child.children, metrics, absl::StrCat(indent, last ? "   " : "│  "), width);
  }
}

void ShowChildren(Context& context, ServiceClient& service, const JobView& job, Extent extent) {
  if (job.children.empty()) return;
  StepMetrics metrics;
  if (job.type == "pipeline") AskSteps(service, job.children, extent, metrics);
  context.out << Styled(job.type == "sweep" ? "Trials" : "Steps", Tint::kBold,
                        context.out_screen.colour)
              << "\n";
  ShowTree(context, job.children, metrics, "", static_cast<int>(NameWidth(job.children, 1)));
}

void ShowRuns(Context& context, const JobView& job, Extent extent) {
  const std::vector<std::string> lines = RunLines(job.runs, extent, job.id);
  if (lines.empty()) return;
  context.out << Styled("Runs", Tint::kBold, context.out_screen.colour) << "\n";
  for (const std::string& line : lines) context.out << "  " << line << "\n";
}

void ShowHistory(Context& context, const JobView& job) {
  const bool colour = context.out_screen.colour;
  for (const std::string& warning : job.warnings) Fact(context, "Warning", warning);
  if (!job.failures.empty()) {
    context.out << Styled("Failures", Tint::kBold, colour) << "\n";
    for (const FailureView& failure : job.failures) {
      context.out << "  " << FailureLine(failure) << "\n";
    }
  }
  if (job.events.empty()) return;
  context.out << Styled("Events", Tint::kBold, colour) << "\n";
  for (const EventView& event : job.events) {
    context.out << "  " << LocalTime(event.time) << "  "
                << Styled(PadRight(Printable(event.state), 12), TintOfState(event.state), colour)
                << (event.reason.empty() ? "" : " ") << Printable(event.reason) << "\n";
  }
}

}  // namespace

absl::StatusOr<ExitCode> JobShow(Context& context, const JobOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Job(id));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const JobView job, ParseJob(text));
  ShowFacts(context, job);
  for (const std::string& line : RemovedLines(job)) Fact(context, "Removed", line);
  for (const auto& [name, value] : LoggedFacts(job, Extent::kAll)) Fact(context, name, value);
  const Extent extent = options.all ? Extent::kAll : Extent::kBrief;
  Fact(context, "Params", ParamsText(job.params, extent, job.id));
  Fact(context, "Artifacts", ArtifactsText(job.artifacts, extent, job.id));
  ShowRuns(context, job, extent);
  ShowChildren(context, service, job, extent);
  for (const std::string& note : NotesOfChildren(job, extent)) Fact(context, "Note", note);
  ShowHistory(context, job);
  return ExitCode::kOk;
}

}  // namespace tutti::client
