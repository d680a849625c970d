#include "platform/service/usage/usage_problems.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/binary_size.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kFreshUsage = absl::Seconds(30);
constexpr absl::Duration kStopped = absl::Seconds(10), kBlocked = absl::Seconds(30);
// Without a processor: of the last minute, so that its samples must be there.
constexpr absl::Duration kMinute = absl::Minutes(1);
constexpr size_t kFewest = 10;
constexpr int kFewestSightings = 5;
constexpr double kWaits = 0.5, kDoesNotWait = 0.1;
// Memory that goes on falling, minute by minute, and ends soon.
constexpr size_t kMinutes = 5;
constexpr double kMemoryEndsSoon = 30;  // minutes
constexpr double kOfTheJob = 0.5;
// Waiting for data: of the reports of so long, which must be of most of it.
constexpr absl::Duration kReported = absl::Minutes(5), kMostOfReported = absl::Minutes(4);
constexpr double kWaitsForData = 0.5;
constexpr const char* kPartsOfAStep[] = {"data",          "forward",   "backward",
                                         "communication", "optimizer", "other"};

// Column `column` of the rank `local`.
size_t RankColumn(int local, size_t column) { return kNodeWidth + local * kRankWidth + column; }

std::string For(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

int Percent(double part) { return static_cast<int>(std::lround(part * 100)); }

// Returns for how long it goes on, to the last sample; zero where that is too few to say.
absl::Duration Length(const NodeHistory::Spell& spell, const NodeHistory& history) {
  if (spell.samples < kFewestSightings) return absl::ZeroDuration();
  const UsageTable& recent = history.recent();
  return absl::FromUnixMillis(recent.time(recent.size() - 1)) - spell.since;
}

// Returns what a column came to in each of the last minutes, the oldest first; nothing where one
// is not known.
std::optional<std::vector<double>> ByMinute(const UsageTable& recent, size_t column, Merge merge,
                                            absl::Time now) {
  std::vector<double> minutes(kMinutes, std::nan(""));
  const int64_t end = absl::ToUnixMillis(now);
  for (size_t i = 0; i < recent.size(); ++i) {
    const int64_t ago = (end - recent.time(i)) / 60'000;
    const float value = recent.at(i, column);
    if (ago < 0 || ago >= static_cast<int64_t>(kMinutes) || !std::isfinite(value)) continue;
    double& minute = minutes[kMinutes - 1 - ago];
    if (std::isnan(minute)) minute = value;
    minute =
        merge == Merge::kLeast ? std::min<double>(minute, value) : std::max<double>(minute, value);
  }
  for (const double minute : minutes) {
    if (std::isnan(minute)) return std::nullopt;
  }
  return minutes;
}

// The rank whose memory has grown most, and by how much.
std::pair<int, double> FastestGrowth(const NodeHistory& history, absl::Time now) {
  std::pair<int, double> fastest = {-1, 0};
  for (int local = 0; local < history.ranks(); ++local) {
    const auto memory =
        ByMinute(history.recent(), RankColumn(local, kRankMemoryColumn), Merge::kMost, now);
    if (!memory || memory->back() - memory->front() <= fastest.second) continue;
    fastest = {history.first_rank() + local, memory->back() - memory->front()};
  }
  return fastest;
}

// Returns the series of each part of a step, of as many points each; none where one is missing.
std::vector<const ReportedMetric*> PartsOfSteps(const std::vector<ReportedMetric>& reported) {
  std::vector<const ReportedMetric*> parts;
  for (const char* const name : kPartsOfAStep) {
    const auto part = std::find_if(reported.begin(), reported.end(), [&](const auto& series) {
      return series.run.empty() && series.name == name;
    });
    if (part == reported.end()) return {};
    parts.push_back(&*part);
    if (part->newest.size() != parts.front()->newest.size()) return {};
  }
  return parts;
}

bool IsFresh(const NodeHistory& history, absl::Time now) {
  const UsageTable& recent = history.recent();
  return recent.size() > 0 &&
         absl::ToUnixMillis(now - kFreshUsage) <= recent.time(recent.size() - 1);
}

}  // namespace

void UsageProblems::AddStates(const std::string& node, const NodeHistory& history) {
  const std::vector<NodeHistory::RankState>& states = history.states();
  for (size_t i = 0; i < states.size(); ++i) {
    const std::string rank =
        absl::StrCat("rank ", history.first_rank() + static_cast<int>(i), " on ", node);
    const absl::Duration stopped = Length(states[i].stopped, history);
    const absl::Duration blocked = Length(states[i].blocked, history);
    if (stopped >= kStopped) {
      lines_.push_back(absl::StrCat(rank, " has been stopped for ", For(stopped),
                                    ", as by SIGSTOP or a debugger: the others wait for it"));
    } else if (blocked >= kBlocked) {
      lines_.push_back(absl::StrCat(rank, " has waited for a disk, a file server or a device for ",
                                    For(blocked)));
    }
  }
}

void UsageProblems::AddWaits(const std::string& node, const NodeHistory& history) {
  const UsageTable& recent = history.recent();
  const int64_t since = absl::ToUnixMillis(now_ - kMinute);
  for (int local = 0; local < history.ranks(); ++local) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = recent.size(); i > 0 && recent.time(i - 1) >= since; --i) {
      const float value = recent.at(i - 1, RankColumn(local, kRankCpuWaitColumn));
      if (!std::isfinite(value)) continue;
      sum += value;
      ++count;
    }
    if (count < kFewest) continue;
    waits_.push_back({history.first_rank() + local, node, sum / static_cast<double>(count)});
  }
}

// Memory that others take falls too: the job's own growth must be at least half of it.
void UsageProblems::AddMemory(const std::string& node, const NodeHistory& history) {
  const UsageTable& recent = history.recent();
  const auto left = ByMinute(recent, kMemoryLeftColumn, Merge::kLeast, now_);
  const auto used = ByMinute(recent, kMemoryColumn, Merge::kMost, now_);
  if (!left || !used) return;
  for (size_t i = 1; i < kMinutes; ++i) {
    if ((*left)[i] >= (*left)[i - 1] || (*used)[i] <= (*used)[i - 1]) return;
  }
  const double fallen = left->front() - left->back();
  if (used->back() - used->front() < kOfTheJob * fallen) return;
  const double each_minute = fallen / (kMinutes - 1);
  const double lasts = left->back() / each_minute;
  if (lasts > kMemoryEndsSoon) return;
  const auto [rank, grown] = FastestGrowth(history, now_);
  const std::string who =
      rank < 0 ? "its processes"
               : absl::StrCat("rank ", rank, " has grown by ",
                              base::BinarySize(static_cast<int64_t>(grown / (kMinutes - 1))),
                              " a minute");
  lines_.push_back(absl::StrCat(
      "the memory of ", node, " will not suffice: ",
      base::BinarySize(static_cast<int64_t>(left->back())), " are left, each of the last ",
      kMinutes, " minutes took more (", who, "), and at this pace it is used up in ",
      lasts < 1 ? "less than a minute" : absl::StrCat(static_cast<int>(lasts), " min")));
}

void UsageProblems::AddGpus(const NodeHistory& history) {
  const UsageTable& recent = history.recent();
  const int64_t since = absl::ToUnixMillis(now_ - kReported);
  double sum = 0;
  int count = 0;
  for (size_t i = recent.size(); i > 0 && recent.time(i - 1) >= since; --i) {
    const float busy = recent.at(i - 1, kGpuUseColumn);
    if (!std::isfinite(busy)) continue;
    sum += busy;
    ++count;
  }
  if (count > 0) gpus_busy_ = gpus_busy_.value_or(0) + sum / count;
}

void UsageProblems::Add(const std::string& name, const NodeHistory& history) {
  if (!IsFresh(history, now_)) return;
  AddMemory(name, history);
  AddStates(name, history);
  AddWaits(name, history);
  AddGpus(history);
}

std::vector<std::string> UsageProblems::SlowRanks() const {
  std::vector<std::string> lines;
  if (waits_.size() < 2) return lines;
  std::vector<Wait> waits = waits_;
  std::sort(waits.begin(), waits.end(),
            [](const Wait& a, const Wait& b) { return a.part < b.part; });
  const double usual = waits[(waits.size() - 1) / 2].part;
  if (usual > kDoesNotWait) return lines;
  for (const Wait& one : waits) {
    if (one.part < kWaits) continue;
    lines.push_back(absl::StrCat("rank ", one.rank, " on ", one.node,
                                 " is slower than the others: ", Percent(one.part),
                                 " % of the last minute it could have run and had no processor "
                                 "(half of the ranks: at most ",
                                 Percent(usual), " %)"));
  }
  return lines;
}

// A line of a report has the means of the steps since the line before.
std::optional<std::string> DataWait(const std::vector<ReportedMetric>& reported,
                                    std::optional<double> gpus_busy, absl::Time now) {
  const std::vector<const ReportedMetric*> parts = PartsOfSteps(reported);
  if (parts.empty() || parts.front()->newest.empty()) return std::nullopt;
  const std::vector<MetricPoint>& data = parts.front()->newest;
  const auto ago = [&](const MetricPoint& point) {
    return now - absl::UnixEpoch() - absl::Seconds(point.time.value_or(0));
  };
  double waited = 0, all = 0;
  absl::Duration since = absl::ZeroDuration();
  for (size_t i = data.size() - 1; i > 0 && ago(data[i]) <= kReported; --i) {
    if (!data[i].step || !data[i - 1].step) return std::nullopt;
    const auto steps = static_cast<double>(*data[i].step - *data[i - 1].step);
    double seconds = 0;  // of a step
    for (const ReportedMetric* const part : parts) seconds += part->newest[i].value;
    if (!std::isfinite(seconds) || steps <= 0) return std::nullopt;
    waited += data[i].value * steps;
    all += seconds * steps;
    since = ago(data[i]);
  }
  if (all <= 0 || since < kMostOfReported || ago(data.back()) > kFreshUsage ||
      waited < kWaitsForData * all) {
    return std::nullopt;
  }
  return absl::StrCat("rank ", parts.front()->rank, " has waited for data for ",
                      Percent(waited / all), " % of the last ", absl::ToInt64Minutes(kReported),
                      " minutes",
                      gpus_busy ? absl::StrFormat(" (GPUs busy: %.2f)", *gpus_busy) : "",
                      ": give it more cores and workers, or shards (tutti-data pack) on a disk or "
                      "in the node's cache");
}

std::vector<std::string> UsageProblems::Lines() const {
  std::vector<std::string> lines = lines_;
  for (std::string& line : SlowRanks()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tutti::service
