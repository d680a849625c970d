#include "platform/client/jobs/usage_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/jobs/use.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/sparkline.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

constexpr int kNarrow = 80, kWide = 120;
constexpr size_t kFewSpans = 6;

Table MakeTable(bool draws) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{.title = ""}, {.title = "Cores", .align = kRight}};
  if (draws) columns.push_back({.title = "", .leaves = 3});
  columns.push_back({.title = "Memory", .align = kRight, .leaves = 1});
  if (draws) columns.push_back({.title = "", .leaves = 4});
  for (const auto& [title, leaves] :
       {std::pair("Left", 2), {"Read", 5}, {"Written", 5}, {"Received", 6}, {"Sent", 6}}) {
    columns.push_back({.title = title, .align = kRight, .leaves = leaves});
  }
  return Table(std::move(columns));
}

int BarsFor(const Screen& screen) {
  if (!screen.is_terminal) return 0;
  if (screen.width >= kWide) return 24;
  return screen.width >= kNarrow ? 12 : 8;
}

// A life of less than some spans is shown by its samples.
std::string Course(const std::vector<double>& recent, const std::vector<double>& whole, int bars) {
  return Sparkline(whole.size() < kFewSpans ? recent : whole, bars);
}

void AddRow(const Table::Cell& name, const Use& use, const UsageSeries& recent,
            const UsageSeries& whole, int bars, Table& table) {
  std::vector<Table::Cell> row = {name, {CoresText(use)}};
  if (bars > 0) row.push_back({Course(recent.cpu, whole.cpu, bars), Tint::kGreen});
  row.push_back({AmountText(use, use.memory)});
  if (bars > 0) row.push_back({Course(recent.memory, whole.memory, bars), Tint::kBlue});
  row.push_back({AmountText(use, use.left)});
  for (const double rate : {use.read, use.written, use.received, use.sent}) {
    row.push_back({RateText(use, rate)});
  }
  table.Add(std::move(row));
}

// Adds the columns of all nodes up, the newest values of each to each other's: a node that was late
// has fewer.
std::vector<double> CourseOfAll(const JobUsageView& usage,
                                std::vector<double> UsageSeries::*column) {
  size_t most = 0;
  for (const NodeUsageView& node : usage.nodes) most = std::max(most, node.whole.cpu.size());
  std::vector<double> sums;
  for (const NodeUsageView& node : usage.nodes) {
    const std::vector<double>& values = (most < kFewSpans ? node.recent : node.whole).*column;
    if (values.size() > sums.size()) {
      sums.insert(sums.begin(), values.size() - sums.size(), Use::kUnknown);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      double& sum = sums[sums.size() - values.size() + i];
      if (std::isfinite(values[i])) sum = std::isfinite(sum) ? sum + values[i] : values[i];
    }
  }
  return sums;
}

std::string NameOf(const NodeUsageView& node) {
  return node.name.empty() ? absl::StrCat("node ", node.number) : node.name;
}

}  // namespace

std::string UsageTable(const JobUsageView& usage, const Screen& screen, absl::Duration asked) {
  const int bars = BarsFor(screen);
  Table table = MakeTable(bars > 0);
  for (const NodeUsageView& node : usage.nodes) {
    AddRow({NameOf(node), Tint::kBold}, UseOf(node, usage.live, asked), node.recent, node.whole,
           bars, table);
    for (const RankUsageView& rank : node.ranks) {
      AddRow({absl::StrCat("  rank ", rank.rank), TintOfRank(rank.rank)},
             UseOf(node, rank, usage.live, asked), rank.recent, rank.whole, bars, table);
    }
  }
  table.DropEmpty();
  return table.Render(screen.width, screen.colour);
}

std::string WhyNoUsage(const JobUsageView& usage) {
  for (const NodeUsageView& node : usage.nodes) {
    if (!node.whole.cpu.empty()) return "";
  }
  return usage.live ? "nothing is known yet: launchers tell it each second, from the first on that "
                      "the processes run"
                    : "nothing is known: the job ran for less than two seconds, or its launchers "
                      "do not tell it";
}

std::vector<std::pair<std::string, std::string>> UsageFacts(const JobUsageView& usage,
                                                            const Screen& screen) {
  UseSum sum;
  for (const NodeUsageView& node : usage.nodes) sum.Add(UseOf(node, usage.live));
  const Use use = sum.Sum();
  const int bars = BarsFor(screen);
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const char* name, std::vector<double> UsageSeries::*column,
                       const std::string& amount, const char* of_life) {
    if (amount.empty()) return;
    const std::string course = Sparkline(CourseOfAll(usage, column), bars);
    facts.emplace_back(
        name, absl::StrCat(course, course.empty() ? "" : " ", amount, usage.live ? "" : of_life));
  };
  add("Cores", &UsageSeries::cpu, CoresText(use), " on average");
  add("Memory", &UsageSeries::memory, AmountText(use, use.memory), " at most");
  return facts;
}

absl::StatusOr<std::string> UsageText(const std::string& answer, const Screen& screen) {
  TUTTI_ASSIGN_OR_RETURN(const JobUsageView usage, ParseUsage(answer));
  std::string text;
  for (const std::string& line : usage.problems) {
    absl::StrAppend(&text, Styled("Problem", Tint::kRed, screen.colour), "  ", Printable(line),
                    "\n");
  }
  const std::string nothing = WhyNoUsage(usage);
  if (!nothing.empty()) return absl::StrCat(text, nothing, "\n");
  absl::StrAppend(&text, UsageTable(usage, screen));
  for (const NodeUsageView& node : usage.nodes) {
    const absl::Duration age = absl::Seconds(node.age);
    if (!usage.live || age <= Use::kStillNow) continue;
    absl::StrAppend(&text, Printable(NameOf(node)), " has told nothing for ",
                    absl::ToInt64Seconds(age), " s\n");
  }
  return text;
}

}  // namespace tutti::client
