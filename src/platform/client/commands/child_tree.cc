#include "platform/client/commands/child_tree.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

// "0:12", or "" before it ran.
std::string Ran(const ChildView& child) {
  if (!child.reused_from.empty() || child.started.empty()) return "";
  const absl::Time end = child.ended.empty() ? absl::Now() : ParseTime(child.ended);
  return Clock(end - ParseTime(child.started));
}

constexpr size_t kMostAsked = 50;  // steps

using StepMetrics = std::map<std::string, std::string>;  // texts, by job

// Asks what a pipeline's steps have logged, and leaves out what cannot be asked. Trials have their
// metric, and a step that took an earlier job's results has them as its own.
void AskSteps(ServiceClient& service, const std::vector<ChildView>& children, Extent extent,
              StepMetrics& texts) {
  for (const ChildView& child : children) {
    if (texts.size() >= kMostAsked) return;
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
struct Listed {
  std::vector<ChildView> children;
  std::string others;  // empty: there are none
};

Listed ListedOf(const std::string& id, const std::vector<ChildView>& children,
                const std::optional<TrialsView>& trials) {
  if (!trials || trials->next.empty()) return {children, ""};
  Listed listed{trials->best, ""};
  listed.children.insert(listed.children.end(), trials->failed.begin(), trials->failed.end());
  const int64_t others = trials->count - std::ssize(listed.children);
  listed.others = absl::StrCat(others, " others: tutti job show ", id, " --all");
  return listed;
}

size_t NameWidth(const Listed& listed, size_t depth) {
  size_t width = 0;
  for (const ChildView& child : listed.children) {
    const Listed below = ListedOf(child.id, child.children, child.trials);
    width = std::max({width, 3 * depth + child.step.size(), NameWidth(below, depth + 1)});
  }
  return width;
}

// One line for each child, those below it behind their branches.
void ShowTree(Context& context, const Listed& listed, const StepMetrics& metrics,
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

}  // namespace

void ShowChildren(Context& context, ServiceClient& service, const JobView& job, Extent extent) {
  const Listed listed = ListedOf(job.id, job.children, job.trials);
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

}  // namespace tutti::client
