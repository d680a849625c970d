#include "platform/client/jobs/runs.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/style.h"

namespace tutti::client {
namespace {

constexpr size_t kMostBrief = 4;  // runs
constexpr size_t kShortId = 8;

// Two runs may have one name.
std::vector<std::string> Names(const std::vector<LoggedRunView>& runs) {
  std::map<std::string, int> count;
  for (const LoggedRunView& run : runs) ++count[run.name];
  std::vector<std::string> names;
  for (const LoggedRunView& run : runs) {
    const std::string id = run.id.substr(0, kShortId);
    names.push_back(run.name.empty()       ? id
                    : count[run.name] == 1 ? run.name
                                           : absl::StrCat(run.name, " ", id));
  }
  return names;
}

// Returns the branches of the tree that stand before the name of each run.
std::vector<std::string> Branches(const std::vector<LoggedRunView>& runs) {
  std::vector<std::string> branches(runs.size());
  std::map<std::string, std::string> below;  // by id: what is before those within it
  std::map<std::string, size_t> last;        // by parent
  for (size_t i = 0; i < runs.size(); ++i) last[runs[i].parent] = i;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto outer = below.find(runs[i].parent);
    if (outer == below.end()) {  // not nested
      below[runs[i].id] = "";
      continue;
    }
    const bool is_last = last[runs[i].parent] == i;
    branches[i] = absl::StrCat(outer->second, is_last ? "└─ " : "├─ ");
    below[runs[i].id] = absl::StrCat(outer->second, is_last ? "   " : "│  ");
  }
  return branches;
}

}  // namespace

std::vector<std::string> RunLines(const std::vector<LoggedRunView>& runs, Extent extent,
                                  absl::string_view job_id) {
  if (runs.size() < 2) return {};
  const std::vector<std::string> names = Names(runs), branches = Branches(runs);
  std::vector<std::string> heads;
  int width = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    heads.push_back(absl::StrCat(branches[i], Printable(names[i])));
    width = std::max(width, Columns(heads.back()));
  }
  const size_t shown = extent == Extent::kAll ? runs.size() : std::min(runs.size(), kMostBrief);
  std::vector<std::string> lines;
  for (size_t i = 0; i < shown; ++i) {
    const std::string metrics = MetricsText(runs[i].metrics, extent, job_id);
    lines.push_back(metrics.empty() ? heads[i]
                                    : absl::StrCat(PadRight(heads[i], width), "  ", metrics));
  }
  if (shown < runs.size()) {
    lines.push_back(
        absl::StrCat("… and ", runs.size() - shown, " more: tutti job show ", job_id, " --all"));
  }
  return lines;
}

}  // namespace tutti::client
