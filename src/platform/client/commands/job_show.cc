#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/job_difference.h"
#include "platform/client/jobs/runs.h"
#include "platform/client/jobs/summary.h"
#include "platform/client/jobs/usage_text.h"
#include "platform/client/jobs/whole_job.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/node_parts.h"

namespace tutti::client {
namespace {

constexpr size_t kMostEvents = 30;  // of a brief view, the newest
constexpr size_t kMostDifferences = 5;
constexpr size_t kMostAskedSteps = 50;
constexpr uint64_t kMostCode = 8 << 20;  // bytes that are worth a line

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
  if (!job.parts || job.parts->empty()) return absl::StrJoin(job.nodes, " ");
  return absl::StrJoin(*job.parts, " ", [](std::string* out, const spec::GivenShareView& part) {
    absl::StrAppend(out, PlaceText(part.node, part.cores, part.memory_bytes, part.gpus));
  });
}

std::string OriginOf(const JobView& job, const std::string& name) {
  const auto found = job.origin.find(name);
  return found == job.origin.end() ? "" : found->second;
}

// "1a2b3c4d5e6f (main), changed since, of https://…".
std::string GitText(const JobView& job) {
  std::string text = OriginOf(job, "git_commit").substr(0, 12);
  if (text.empty()) return text;
  const std::string branch = OriginOf(job, "git_branch");
  if (!branch.empty()) absl::StrAppend(&text, " (", branch, ")");
  const std::string dirty = OriginOf(job, "git_dirty");
  if (!dirty.empty()) text += dirty == "true" ? ", changed since" : ", perhaps changed since";
  const std::string repository = OriginOf(job, "git_repository");
  if (!repository.empty()) absl::StrAppend(&text, ", of ", repository);
  return text;
}

// "train:3, Python 3.11.2 (/usr/bin/python3, first in the job's PATH), 43 packages
// (logs/environment.txt)".
std::string EnvironmentText(ServiceClient& service, const JobView& job) {
  if (job.type != "command" || !job.ended_already()) return job.environment;
  const auto installed = InstalledFor(service, job.id);
  if (!installed.ok()) return job.environment;
  const size_t packages = installed->packages.size();
  const std::string& interpreter = installed->interpreter;
  const std::string whose =
      interpreter.empty() ? "" : absl::StrCat(" (", interpreter, ", first in the job's PATH)");
  return absl::StrCat(job.environment, ", Python ", installed->python, whose, ", ", packages,
                      packages == 1 ? " package (" : " packages (", kInstalledResult, ")");
}

// What cannot be asked is left out: a job that can be shown is shown.
void ShowDifference(Context& context, ServiceClient& service, const JobView& job, Extent extent) {
  if (!job.parent.empty()) return;  // was not submitted by itself
  const auto former = FormerJob(service, job.id);
  if (!former.ok()) return;
  const auto difference = CompareJobs(service, *former, job.id, kMostCode);
  if (!difference.ok()) return;
  const size_t most = extent == Extent::kAll ? 0 : kMostDifferences;
  Fact(context, "Differs from",
       absl::StrCat(*former, ": ", DifferenceLine(*difference, job.id, most)));
}

// "place 5: behind a, b, c and 1 more"; "" of a job that does not wait.
std::string QueueText(const JobView& job) {
  if (job.queue) {
    std::string text = absl::StrCat("place ", job.queue->place);
    if (job.queue->ahead.empty()) return absl::StrCat(text, ": none is ahead");
    absl::StrAppend(&text, ": behind ",
                    absl::StrJoin(job.queue->ahead, ", ",
                                  [](std::string* out, const spec::JobAheadView& ahead) {
                                    out->append(ahead.id);
                                  }));
    const int64_t more = job.queue->place - 1 - std::ssize(job.queue->ahead);
    return more > 0 ? absl::StrCat(text, " and ", more, " more") : text;
  }
  if (job.state != "Queued" || job.type != "command" || job.compute == "local") return "";
  return absl::StrCat("place not known: the cluster of ", job.compute, " decides");
}

// "in 5m at the latest, at 2026-11-30 12:03:11"; "" if no time is known.
std::string StartText(const JobView& job) {
  if (job.expected_start.empty()) return "";
  const std::string in = Age(ParseTime(job.expected_start) - absl::Now());
  const std::string at = LocalTime(job.expected_start);
  if (job.expected_start_is == "latest") return absl::StrCat("in ", in, " at the latest, at ", at);
  if (job.expected_start_is == "plan") {
    return absl::StrCat("in ", in, " as its cluster has planned, at ", at);
  }
  return absl::StrCat("in about ", in, ", at ", at, ": an estimate");
}

void ShowFacts(Context& context, ServiceClient& service, const JobView& job, Extent extent) {
  Fact(context, "Job", job.id);
  if (job.display_name != job.id) Fact(context, "Title", job.display_name);
  Fact(context, "Experiment", job.experiment_name);
  Fact(context, "Description", job.description.substr(0, job.description.find('\n')));
  Fact(context, "Tags", absl::StrJoin(job.tags, " ", absl::PairFormatter("=")));
  Fact(context, "Command", job.command.substr(0, job.command.find('\n')));
  Fact(context, "Rerun of", OriginOf(job, "rerun_of"));
  Fact(context, "Resumes from", OriginOf(job, "resumes_from"));
  Fact(context, "Git", GitText(job));
  Fact(context, "Environment", EnvironmentText(service, job));
  ShowDifference(context, service, job, extent);
  Fact(context, "State", absl::StrCat(job.state, job.reason.empty() ? "" : ": ", job.reason));
  Fact(context, "Queue", QueueText(job));
  Fact(context, "Starts", StartText(job));
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
         absl::StrCat(PartText(job.part->cpus, job.part->memory_bytes, job.part->gpus),
                      " of each node"));
  }
  Fact(context, "Nodes", NodesText(job));
  Fact(context, "Priority", job.priority);
}

// Returns how many processors the job's nodes have for it; 0 if that is not known.
int CoresOf(ServiceClient& service, const JobView& job) {
  if (job.part) return job.part->cpus * job.node_count;
  const auto text = service.Nodes();
  const auto all = text.ok() ? Parse<NodesView>(*text) : text.status();
  if (!all.ok()) return 0;
  size_t nodes = 0, cores = 0;
  for (const NodeView& node : all->nodes) {
    if (node.compute != job.compute || !absl::c_linear_search(job.nodes, node.name)) continue;
    ++nodes;
    cores += node.cores.size();
  }
  return nodes == job.nodes.size() ? static_cast<int>(cores) : 0;
}

// Shows how its ranks stand and what they use. What cannot be asked is left out: a job that can be
// shown is shown.
void ShowRanks(Context& context, ServiceClient& service, const JobView& job) {
  if (job.type != "command" || job.started.empty()) return;
  const auto text = service.Usage(job.id, -1, /*points=*/0);
  const auto usage = text.ok() ? ParseUsage(*text) : text.status();
  if (!usage.ok()) return;
  Fact(context, "Ranks", RanksText(*usage));
  if (!WhyNoUsage(*usage).empty()) return;
  context.out << UseText(*usage, CoresOf(service, job), context.out_screen);
}

void ShowRuns(Context& context, const JobView& job, Extent extent) {
  const std::vector<std::string> lines = RunLines(job.logged.runs, extent, job.id);
  if (lines.empty()) return;
  context.out << Styled("Runs", Tint::kBold, context.out_screen.colour) << "\n";
  for (const std::string& line : lines) context.out << "  " << line << "\n";
}

void ShowHistory(Context& context, const JobView& job, Extent extent) {
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
  const bool brief = extent == Extent::kBrief && job.events.size() > kMostEvents;
  if (brief || job.events_before) {
    context.out << "  older ones: tutti job show " << job.id << " --all\n";
  }
  for (size_t i = brief ? job.events.size() - kMostEvents : 0; i < job.events.size(); ++i) {
    const EventView& event = job.events[i];
    context.out << "  " << LocalTime(event.time) << "  "
                << Styled(PadRight(Printable(event.state), 12), TintOfState(event.state), colour)
                << (event.reason.empty() ? "" : " ") << Printable(event.reason) << "\n";
  }
}

// "0:12", or "" before it ran.
std::string Ran(const ChildView& child) {
  if (!child.reused_from.empty() || child.started.empty()) return "";
  const absl::Time end = child.ended.empty() ? absl::Now() : ParseTime(child.ended);
  return Clock(end - ParseTime(child.started));
}

using StepMetrics = std::map<std::string, std::string>;  // texts, by job

// Asks what a pipeline's steps have logged, and leaves out what cannot be asked. Trials have their
// metric, and a step that took an earlier job's results has them as its own.
void AskSteps(ServiceClient& service, const std::vector<ChildView>& children, Extent extent,
              StepMetrics& texts) {
  for (const ChildView& child : children) {
    if (texts.size() >= kMostAskedSteps) return;
    if (child.id.empty() || child.metric) continue;
    const auto text = service.Job(child.id);
    const auto job = text.ok() ? Parse<JobView>(*text) : absl::StatusOr<JobView>(text.status());
    texts[child.id] = job.ok() ? MetricsText(job->logged.metrics, extent, child.id) : "";
    AskSteps(service, child.children, extent, texts);
  }
}

// Returns what there is to say about a child beside its state.
std::string Remark(const ChildView& child, const StepMetrics& metrics) {
  std::vector<std::string> parts;
  const auto logged = metrics.find(child.id);
  if (logged != metrics.end() && !logged->second.empty()) parts.push_back(logged->second);
  if (child.metric) parts.push_back(absl::StrFormat("%.6g", *child.metric));
  if (child.best) parts.push_back("best");
  if (!child.values.empty())
    parts.push_back(absl::StrJoin(child.values, " ", absl::PairFormatter("=")));
  const bool plain = child.state == "Completed" && child.reused_from.empty();
  if (child.state != "Waiting" && child.state != "NotStarted" &&
      (!plain || !child.children.empty())) {
    parts.push_back(child.reason);
  }
  return absl::StrJoin(parts, "  ");
}

// The lines of a tree: children, and what there is to say of those that have none.
struct ListedChildren {
  std::vector<ChildView> children;
  std::string others;  // empty: there are none
};

ListedChildren ListedOf(const std::string& id, const std::vector<ChildView>& children,
                        const std::optional<TrialsView>& trials) {
  if (!trials || trials->next.empty()) return {children, ""};
  ListedChildren listed{trials->best, ""};
  listed.children.insert(listed.children.end(), trials->failed.begin(), trials->failed.end());
  const int64_t others = trials->count - std::ssize(listed.children);
  listed.others = absl::StrCat(others, " others: tutti job show ", id, " --all");
  return listed;
}

size_t NameWidth(const ListedChildren& listed, size_t depth) {
  size_t width = 0;
  for (const ChildView& child : listed.children) {
    const ListedChildren below = ListedOf(child.id, child.children, child.trials);
    width = std::max({width, 3 * depth + child.step.size(), NameWidth(below, depth + 1)});
  }
  return width;
}

// One line for each child, those below it behind their branches.
void ShowTree(Context& context, const ListedChildren& listed, const StepMetrics& metrics,
              const std::string& indent, int width) {
  const bool colour = context.out_screen.colour;
  for (size_t i = 0; i < listed.children.size(); ++i) {
    const ChildView& child = listed.children[i];
    const bool last = i + 1 == listed.children.size() && listed.others.empty();
    const std::string name = absl::StrCat(indent, last ? "└─ " : "├─ ", Printable(child.step));
    const std::string state = child.state == "NotStarted" ? "not started" : child.state;
    context.out << "  " << PadRight(name, width) << "  "
                << Styled(PadRight(Printable(state), 12), TintOfState(child.state), colour) << " "
                << PadLeft(Ran(child), 7) << "  " << Printable(Remark(child, metrics)) << "\n";
    ShowTree(context, ListedOf(child.id, child.children, child.trials), metrics,
             absl::StrCat(indent, last ? "   " : "│  "), width);
  }
  if (!listed.others.empty()) {
    context.out << "  " << indent << "└─ " << Printable(listed.others) << "\n";
  }
}

// "10000: 9000 completed, 1000 failed", or "" where all are listed.
std::string Counts(const std::optional<TrialsView>& trials) {
  if (!trials || trials->next.empty()) return "";
  return absl::StrCat(trials->count, ": ",
                      absl::StrJoin(trials->states, ", ", [](std::string* out, const auto& state) {
                        absl::StrAppend(out, state.second, " ", absl::AsciiStrToLower(state.first));
                      }));
}

// Writes a line for each child. Of a sweep that has more trials than were fetched, the best ones
// and some that failed, and how to see the others.
void ShowChildren(Context& context, ServiceClient& service, const JobView& job, Extent extent) {
  const ListedChildren listed = ListedOf(job.id, job.children, job.trials);
  if (listed.children.empty() && listed.others.empty()) return;
  StepMetrics metrics;
  if (job.type == "pipeline") AskSteps(service, job.children, extent, metrics);
  const bool sweep = job.type == "sweep";
  const std::string counts = Counts(job.trials);
  context.out << Styled(PadRight(sweep ? "Trials" : "Steps", counts.empty() ? 0 : 12), Tint::kBold,
                        context.out_screen.colour)
              << (counts.empty() ? "" : " ") << Printable(counts) << "\n";
  ShowTree(context, listed, metrics, "", static_cast<int>(NameWidth(listed, 1)));
}

}  // namespace

absl::StatusOr<ExitCode> JobShow(Context& context, const JobOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         options.all ? WholeJob(service, id) : service.Job(id));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
  const Extent extent = options.all ? Extent::kAll : Extent::kBrief;
  ShowFacts(context, service, job, extent);
  for (const std::string& line : RemovedLines(job)) Fact(context, "Removed", line);
  if (job.peak_memory && job.world_size > 1) {
    Fact(context, "Largest rank", absl::StrCat(Bytes(*job.peak_memory), " of memory at most"));
  }
  Fact(context, "Stored logs", StoredLogsLine(job));
  if (job.mlflow_run) Fact(context, "MLflow run", job.mlflow_run->id);
  for (const auto& [name, value] : LoggedFacts(job, Extent::kAll)) Fact(context, name, value);
  Fact(context, "Params", ParamsText(job.logged.params, extent, job.id));
  Fact(context, "Artifacts", ArtifactsText(job.logged.artifacts, extent, job.id));
  ShowRanks(context, service, job);
  ShowRuns(context, job, extent);
  ShowChildren(context, service, job, extent);
  for (const std::string& note : NotesOfChildren(job, extent)) Fact(context, "Note", note);
  ShowHistory(context, job, extent);
  return ExitCode::kOk;
}

}  // namespace tutti::client
