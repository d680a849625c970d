#include "runtime/train/report/ranks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::train {
namespace {

constexpr double kRemarkable = 0.05;  // of a step
constexpr size_t kRanksShown = 8;

double LowerMedian(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Of>
double MedianOf(std::span<const StepParts> ranks, Of of) {
  std::vector<double> values;
  for (const StepParts& rank : ranks) values.push_back(of(rank));
  return LowerMedian(std::move(values));
}

std::string RankLine(size_t rank, const StepParts& parts) {
  std::string line = absl::StrFormat("  rank %-5d", rank);
  for (const StepPart& part : kStepParts) {
    absl::StrAppendFormat(&line, "%*.2f", static_cast<int>(part.name.size()) + 3,
                          1e3 * parts.*part.seconds);
  }
  return absl::StrCat(line, absl::StrFormat("%9.2f", 1e3 * parts.Sum()));
}

}  // namespace

std::optional<Straggler> SlowestRank(std::span<const StepParts> ranks) {
  if (ranks.size() < 2) return std::nullopt;
  const auto slowest =
      std::max_element(ranks.begin(), ranks.end(),
                       [](const StepParts& a, const StepParts& b) { return a.Own() < b.Own(); });
  Straggler found;
  found.rank = static_cast<int>(slowest - ranks.begin());
  found.own = slowest->Own();
  found.median_own = MedianOf(ranks, [](const StepParts& parts) { return parts.Own(); });
  if (found.own - found.median_own < kRemarkable * slowest->Sum()) return std::nullopt;
  double most = 0;
  for (const StepPart& part : kStepParts) {
    if (part.seconds == &StepParts::communication) continue;
    const double median = MedianOf(ranks, [&](const StepParts& p) { return p.*part.seconds; });
    const double seconds = *slowest.*part.seconds;
    if (seconds - median <= most) continue;
    most = seconds - median;
    found.part = part, found.seconds = seconds, found.median = median;
  }
  return most > 0 ? std::optional(found) : std::nullopt;
}

std::string Describe(const Straggler& s) {
  return absl::StrFormat(
      "rank %d is the slowest: %.1f ms of its own per step, the median rank %.1f ms; %s takes %.1f "
      "ms there, in the median %.1f ms",
      s.rank, 1e3 * s.own, 1e3 * s.median_own, s.part.name, 1e3 * s.seconds, 1e3 * s.median);
}

std::string DescribeRanks(std::span<const StepParts> ranks) {
  std::string text = "ms per step ";
  for (const StepPart& part : kStepParts) absl::StrAppend(&text, "  ", part.name, " ");
  absl::StrAppend(&text, "     all");
  const std::optional<Straggler> straggler = SlowestRank(ranks);
  const size_t slowest = straggler ? static_cast<size_t>(straggler->rank) : 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank < kRanksShown || rank == slowest) {
      absl::StrAppend(&text, "\n", RankLine(rank, ranks[rank]));
    }
  }
  if (straggler) absl::StrAppend(&text, "\n", Describe(*straggler));
  return text;
}

nlohmann::json RanksJson(std::span<const StepParts> ranks) {
  nlohmann::json list = nlohmann::json::array();
  for (const StepParts& parts : ranks) {
    nlohmann::json rank;
    for (const StepPart& part : kStepParts) rank[std::string(part.name)] = parts.*part.seconds;
    list.push_back(std::move(rank));
  }
  nlohmann::json slowest;
  if (const auto found = SlowestRank(ranks)) {
    slowest = {{"rank", found->rank},
               {"own", found->own},
               {"median_own", found->median_own},
               {"part", std::string(found->part.name)},
               {"seconds", found->seconds},
               {"median", found->median}};
  }
  return {{"ranks", std::move(list)}, {"slowest", std::move(slowest)}};
}

}  // namespace tutti::train
