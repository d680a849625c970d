#include "platform/client/jobs/usage_text.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "platform/client/jobs/use.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/sparkline.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

constexpr int kNarrow = 80, kWide = 120;
constexpr size_t kFewSpans = 6;
constexpr size_t kMostEnds = 3;  // ranks that are named with how they ended

Table MakeTable(bool draws) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{.title = ""}, {.title = "Cores", .align = kRight}};
  if (draws) columns.push_back({.title = "", .leaves = 6});
  columns.push_back({.title = "Memory", .align = kRight, .leaves = 1});
  if (draws) columns.push_back({.title = "", .leaves = 7});
  columns.push_back({.title = "Left", .align = kRight, .leaves = 4});
  columns.push_back({.title = "GPUs", .align = kRight, .leaves = 2});
  if (draws) columns.push_back({.title = "", .leaves = 5});
  for (const auto& [title, leaves] : {std::pair("GPU memory", 3),
                                      {"Power", 9},
                                      {"Temp", 9},
                                      {"Read", 8},
                                      {"Written", 8},
                                      {"Received", 10},
                                      {"Sent", 10}}) {
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
  row.push_back({GpusText(use)});
  if (bars > 0) row.push_back({Course(recent.gpu_use, whole.gpu_use, bars), Tint::kGreen});
  row.push_back({GpuMemoryText(use)});
  row.push_back({GpuPowerText(use)});
  row.push_back({GpuTemperatureText(use)});
  for (const double rate : {use.read, use.written, use.received, use.sent}) {
    row.push_back({RateText(use, rate)});
  }
  table.Add(std::move(row));
}

// UseRow is a line of what a job has used: the columns are added up, as are what they are now.
struct UseRow {
  const char* name;
  std::vector<std::vector<double> UsageSeries::*> columns;
  std::vector<double Use::*> now;
  std::string (*text)(const Use& use, double value);
  std::string of = "";  // behind the mean
};

// A further thing that is measured is a row here.
std::vector<UseRow> UseRows(int cores) {
  const auto cores_text = [](const Use& use, double value) {
    return CoresText({.cores = value, .age = use.age, .is_partial = use.is_partial});
  };
  const auto gpus_text = [](const Use& use, double value) {
    return GpusText({.gpus = value, .age = use.age, .is_partial = use.is_partial});
  };
  const std::string of =
      cores > 0 ? absl::StrCat(" of ", cores, cores == 1 ? " core" : " cores") : " cores";
  using Series = UsageSeries;
  return {
      {"cpu", {&Series::cpu}, {&Use::cores}, cores_text, of},
      {"memory", {&Series::memory}, {&Use::memory}, AmountText},
      {"disk", {&Series::disk_read, &Series::disk_write}, {&Use::read, &Use::written}, RateText},
      {"network",
       {&Series::net_receive, &Series::net_send},
       {&Use::received, &Use::sent},
       RateText},
      {"gpus", {&Series::gpu_use}, {&Use::gpus}, gpus_text, " busy"},
      {"gpu mem", {&Series::gpu_memory}, {&Use::gpu_memory}, AmountText},
  };
}

// Adds values up, the newest to the newest: a node that was late has fewer.
void AddNewest(const std::vector<double>& values, std::vector<double>& sums) {
  if (values.size() > sums.size()) {
    sums.insert(sums.begin(), values.size() - sums.size(), Use::kUnknown);
  }
  const size_t first = sums.size() - values.size();
  for (size_t i = 0; i < values.size(); ++i) AddTo(sums[first + i], values[i]);
}

using Resolution = UsageSeries NodeUsageView::*;

bool HasAllSamples(const NodeUsageView& node) {
  const std::vector<double>& samples = node.whole.samples;
  return samples.size() == node.whole.cpu.size() &&
         std::accumulate(samples.begin(), samples.end(), 0.0) <=
             static_cast<double>(node.recent.cpu.size());
}

// Returns the finest that has the whole life: the newest samples, where there were no others.
Resolution ResolutionOf(const JobUsageView& usage) {
  return absl::c_all_of(usage.nodes, HasAllSamples) ? &NodeUsageView::recent
                                                    : &NodeUsageView::whole;
}

std::vector<double> CourseOfAll(const JobUsageView& usage, const UseRow& row,
                                Resolution resolution) {
  std::vector<double> sums;
  for (const NodeUsageView& node : usage.nodes) {
    for (const auto column : row.columns) AddNewest(node.*resolution.*column, sums);
  }
  return sums;
}

// Returns of how many samples the values of CourseOfAll are, by the node that has the most.
std::vector<double> SamplesOfAll(const JobUsageView& usage, Resolution resolution) {
  std::vector<double> samples;
  for (const NodeUsageView& node : usage.nodes) {
    const std::vector<double>& own = (node.*resolution).samples;
    if (own.size() > samples.size()) samples = own;
  }
  return samples;
}

// "now 1.97, mean 1.80 of 2 cores, peak 2.00"; empty of what is not known. The newest samples show
// higher peaks than the means of longer spans.
std::string AmountsText(const JobUsageView& usage, const UseRow& row, Resolution resolution,
                        const Use& now) {
  const std::vector<double> course = CourseOfAll(usage, row, resolution);
  const double mean = WeighedMean(course, SamplesOfAll(usage, resolution));
  const double peak =
      std::fmax(MostOf(course), MostOf(CourseOfAll(usage, row, &NodeUsageView::recent)));
  if (!std::isfinite(mean) || !std::isfinite(peak)) return "";
  double sum = Use::kUnknown;
  for (const auto value : row.now) AddTo(sum, now.*value);
  const std::string current = usage.live ? row.text(now, sum) : "";
  return absl::StrCat(current.empty() ? "" : absl::StrCat("now ", current, ", "), "mean ",
                      row.text({}, mean), row.of, ", peak ", row.text({}, peak));
}

std::string NameOf(const NodeUsageView& node) {
  return node.name.empty() ? absl::StrCat("node ", node.number) : node.name;
}

// Returns " (rank 1, exit code 0, 2026-11-30 12:03:11; and 2 more)".
std::string EndsText(const std::vector<const RankStateView*>& ended) {
  std::vector<std::string> texts;
  for (const RankStateView* rank : ended) {
    if (texts.size() == kMostEnds) {
      texts.push_back(absl::StrCat("and ", ended.size() - kMostEnds, " more"));
      break;
    }
    const absl::Time time = ParseTime(rank->since);
    texts.push_back(
        absl::StrCat("rank ", rank->rank,
                     rank->signal != 0 ? absl::StrCat(", signal ", rank->signal)
                                       : absl::StrCat(", exit code ", rank->code),
                     time == absl::InfinitePast()
                         ? ""
                         : absl::FormatTime(", %Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone())));
  }
  return absl::StrCat(" (", absl::StrJoin(texts, "; "), ")");
}

}  // namespace

std::string RanksText(const JobUsageView& usage) {
  if (!usage.ranks) return "not known: the service is of a version that does not tell it";
  size_t running = 0, not_started = 0;
  std::vector<const RankStateView*> ended;
  for (const RankStateView& rank : *usage.ranks) {
    running += rank.state == "running";
    not_started += rank.state == "not_started";
    if (rank.state == "ended") ended.push_back(&rank);
  }
  const size_t unknown = usage.ranks->size() - running - not_started - ended.size();
  const bool all_well =
      ended.size() == usage.ranks->size() && absl::c_all_of(ended, [](const RankStateView* rank) {
        return rank->code == 0 && rank->signal == 0;
      });
  std::vector<std::string> parts;
  if (running > 0) parts.push_back(absl::StrCat(running, " running"));
  if (not_started > 0) parts.push_back(absl::StrCat(not_started, " not started"));
  if (!ended.empty()) {
    parts.push_back(
        absl::StrCat(ended.size(), " ended", all_well ? " with exit code 0" : EndsText(ended)));
  }
  if (unknown > 0) parts.push_back(absl::StrCat(unknown, " not known"));
  return absl::StrJoin(parts, ", ");
}

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

std::string UseText(const JobUsageView& usage, int cores, const Screen& screen) {
  const Resolution resolution = ResolutionOf(usage);
  UseSum sum;
  for (const NodeUsageView& node : usage.nodes) sum.Add(UseOf(node, usage.live));
  const int bars = BarsFor(screen);
  std::string text;
  for (const UseRow& row : UseRows(cores)) {
    const std::string amounts = AmountsText(usage, row, resolution, sum.Sum());
    if (amounts.empty()) continue;
    const std::string course = Sparkline(CourseOfAll(usage, row, resolution), bars);
    absl::StrAppend(&text, "  ", PadRight(row.name, 8), PadRight(course, bars),
                    bars > 0 ? "  " : "", amounts, "\n");
  }
  if (text.empty()) return "";
  for (const std::string& problem : usage.problems) {
    absl::StrAppend(&text, "  ", Styled("problem", Tint::kRed, screen.colour), " ",
                    Printable(problem), "\n");
  }
  return absl::StrCat(Styled("Use", Tint::kBold, screen.colour), "\n", text);
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
