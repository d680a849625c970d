#include "platform/service/usage/job_usage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/service/usage/usage_problems.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kBetweenSaves = absl::Seconds(30);
constexpr absl::Duration kStillNow = absl::Seconds(30);

std::string FileName(int node) { return absl::StrCat("node-", node); }

// Returns the nodes that there are files of.
std::map<int, fs::path> NodesIn(const fs::path& folder) {
  std::map<int, fs::path> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().native();
    absl::string_view name = file;
    int node = 0;
    if (absl::ConsumeSuffix(&name, ".whole") && absl::ConsumePrefix(&name, "node-") &&
        absl::SimpleAtoi(name, &node) && node >= 0) {
      names[node] = folder / FileName(node);
    }
  }
  return names;
}

void RemoveFiles(const fs::path& name) {
  std::error_code error;
  for (const char* const suffix : {".whole", ".recent"}) fs::remove(name.native() + suffix, error);
}

constexpr absl::Duration kOldest = absl::Hours(1);
constexpr absl::Duration kAhead = absl::Seconds(5);  // that a clock may be without a word
constexpr size_t kUsualPoints = 60;
// Values in memory: of all jobs, 512 MiB, and of one; each has a little in any case.
constexpr int64_t kMostInMemory = int64_t{128} << 20;
constexpr int64_t kMostRecentOfJob = 16 << 20, kMostSpansOfJob = 8 << 20;
constexpr size_t kFewestRows = 44;

bool IsAsked(const UsageQuery& query, int first_rank, int ranks) {
  return !query.rank || (*query.rank >= first_rank && *query.rank < first_rank + ranks);
}

JobUsageView::Node NodeOf(const NodeHistory& history, size_t points) {
  return {.first_rank = history.first_rank(),
          .ranks = history.ranks(),
          .recent = history.recent().Newest(points),
          .whole = history.Whole().MergedTo(points)};
}

size_t WidthOf(int ranks) { return UsageTable(ranks).width(); }

// Returns how many points an answer of so many columns has.
absl::StatusOr<size_t> PointsFor(size_t width, const UsageQuery& query) {
  const size_t most = JobUsage::kMostValues / 2 / std::max<size_t>(width, 1);
  if (!query.points) return std::clamp<size_t>(most, 1, kUsualPoints);
  if (*query.points <= most) return *query.points;
  return absl::InvalidArgumentError(
      "that are too many values for one answer: ask for fewer points, or for one rank");
}

// Returns how much is kept of each node where all have so many columns and so many values are left.
NodeHistory::Rows RowsFor(size_t width, int64_t left) {
  const int64_t columns = std::max<int64_t>(static_cast<int64_t>(width), 1);
  const auto rows = [&](int64_t values, size_t most) {
    return std::clamp(static_cast<size_t>(std::max<int64_t>(values, 0) / columns), kFewestRows,
                      most);
  };
  return {.recent = rows(std::min(kMostRecentOfJob, left / 6), NodeHistory::kMostRecent),
          .spans = rows(std::min(kMostSpansOfJob, left / 12), NodeHistory::kMostSpans)};
}

std::optional<uint64_t> BytesOf(float memory) {
  if (!std::isfinite(memory)) return std::nullopt;
  return static_cast<uint64_t>(memory);
}

void AddIfKnown(float value, std::optional<double>& sum) {
  if (std::isfinite(value)) sum = sum.value_or(0) + value;
}

absl::Status NoSuchRank(int rank) {
  return absl::NotFoundError(absl::StrCat("there is nothing of a rank ", rank));
}

}  // namespace

void JobUsageView::End() {
  live = false;
  problems.clear();
  for (Node& node : nodes) {
    node.name.clear();
    node.age.reset();
  }
}

JobUsage::JobUsage(fs::path folder, std::vector<NodePlace> nodes,
                   std::shared_ptr<UsageMemory> memory)
    : folder_(std::move(folder)),
      places_(std::move(nodes)),
      memory_(memory != nullptr ? std::move(memory) : std::make_shared<UsageMemory>()) {
  size_t width = 0;
  for (const NodePlace& place : places_) width += WidthOf(place.ranks);
  rows_ = RowsFor(width, kMostInMemory - memory_->values);
  values_ = static_cast<int64_t>(width * (rows_.recent + rows_.spans));
  memory_->values += values_;
  memory_->nodes += static_cast<int64_t>(places_.size());
  for (const NodePlace& place : places_) {
    nodes_.push_back(std::make_unique<Node>(NodeHistory(place.first_rank, place.ranks, rows_)));
  }
}

JobUsage::~JobUsage() {
  memory_->values -= values_;
  memory_->nodes -= static_cast<int64_t>(places_.size());
}

bool JobUsage::Take(int node, std::vector<spec::UsageSample> samples, absl::Time now,
                    absl::Duration since_boot) {
  if (!takes_ || node < 0 || node >= static_cast<int>(nodes_.size())) return false;
  {
    Node& one = *nodes_[node];
    absl::MutexLock lock(&one.mutex);
    one.history.DropAfter(now + kAhead);
    for (spec::UsageSample& sample : samples) {
      sample.time = std::min(sample.time, now);
      if (sample.time >= now - kOldest) one.history.Add(sample);
    }
  }
  absl::MutexLock lock(&mutex_);
  if (saves_ || since_boot - saved_at_ < kBetweenSaves) return false;
  saves_ = saved_at_ != -absl::InfiniteDuration();
  saved_at_ = since_boot;
  return saves_;
}

absl::StatusOr<JobUsageView> JobUsage::View(const UsageQuery& query, absl::Time now) const {
  JobUsageView view{.live = true};
  size_t width = 0;
  for (const NodePlace& place : places_) {
    if (IsAsked(query, place.first_rank, place.ranks)) width += WidthOf(place.ranks);
  }
  TUTTI_ASSIGN_OR_RETURN(const size_t points, PointsFor(width, query));
  UsageProblems problems(now);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeHistory history = nodes_[i]->Copy();
    problems.Add(places_[i].name, history);
    if (!IsAsked(query, history.first_rank(), history.ranks())) continue;
    JobUsageView::Node& node = view.nodes.emplace_back(NodeOf(history, points));
    node.name = places_[i].name;
    node.number = static_cast<int>(i);
    const UsageTable& recent = history.recent();
    if (recent.size() == 0) continue;
    node.age = now - absl::FromUnixMillis(recent.time(recent.size() - 1));
  }
  if (query.rank && view.nodes.empty()) return NoSuchRank(*query.rank);
  view.problems = problems.Lines();
  view.gpus_busy = problems.gpus_busy();
  return view;
}

UsageNow JobUsage::Now(absl::Time now) const {
  UsageNow usage;
  const int64_t since = absl::ToUnixMillis(now - kStillNow);
  for (const auto& node : nodes_) {
    absl::MutexLock lock(&node->mutex);
    const UsageTable& recent = node->history.recent();
    if (recent.size() == 0 || recent.time(recent.size() - 1) < since) continue;
    ++usage.nodes;
    const absl::Span<const float> last = recent.row(recent.size() - 1);
    if (std::isfinite(last[kCpuColumn])) usage.cpu += last[kCpuColumn];
    if (std::isfinite(last[kMemoryColumn])) usage.memory += last[kMemoryColumn];
    AddIfKnown(last[kGpuUseColumn], usage.gpu_use);
    AddIfKnown(last[kGpuMemoryColumn], usage.gpu_memory);
    if (!std::isfinite(last[kMemoryLeftColumn])) continue;
    usage.memory_left = std::min<double>(usage.memory_left.value_or(last[kMemoryLeftColumn]),
                                         last[kMemoryLeftColumn]);
  }
  return usage;
}

std::optional<uint64_t> JobUsage::PeakMemory() const {
  float peak = std::numeric_limits<float>::quiet_NaN();
  for (const auto& node : nodes_) {
    absl::MutexLock lock(&node->mutex);
    peak = std::fmax(peak, node->history.PeakRankMemory());
  }
  return BytesOf(peak);
}

std::optional<uint64_t> JobUsage::ReadPeakMemory(const fs::path& folder) {
  float peak = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [number, name] : NodesIn(folder)) {
    const auto history = NodeHistory::Read(name);
    if (history.ok()) peak = std::fmax(peak, history->PeakRankMemory());
  }
  return BytesOf(peak);
}

void JobUsage::Load() {
  if (takes_) return;
  for (size_t i = 0; i < places_.size(); ++i) {
    const fs::path name = folder_ / FileName(static_cast<int>(i));
    auto kept = NodeHistory::Read(name, places_[i].first_rank, places_[i].ranks, rows_);
    if (kept.ok()) {
      absl::MutexLock lock(&nodes_[i]->mutex);
      nodes_[i]->history = *std::move(kept);
    } else {
      RemoveFiles(name);
    }
  }
  for (const auto& [number, name] : NodesIn(folder_)) {
    if (number >= static_cast<int>(places_.size())) RemoveFiles(name);
  }
  takes_ = true;
}

void JobUsage::Save(bool has_room) {
  if (has_room) Write(/*end=*/false);
  absl::MutexLock lock(&mutex_);
  saves_ = false;
}

void JobUsage::Close(bool has_room) {
  if (takes_.exchange(false) && has_room) Write(/*end=*/true);
}

void JobUsage::Write(bool end) {
  bool has_folder = false;  // made once: it is to stay away where the job is deleted meanwhile
  for (size_t i = 0; i < places_.size(); ++i) {
    NodeHistory::Unsaved whole, recent;
    {
      absl::MutexLock lock(&nodes_[i]->mutex);
      whole = nodes_[i]->history.TakeUnsaved(end);
      if (end) recent = nodes_[i]->history.RecentToSave();
    }
    if (whole.rows.empty()) continue;
    const std::string name = (folder_ / FileName(static_cast<int>(i))).native();
    absl::Status written = has_folder ? absl::OkStatus() : base::MakeDirectories(folder_);
    has_folder = true;
    written.Update(NodeHistory::Write(name + ".whole", whole));
    written.Update(NodeHistory::Write(name + ".recent", recent));
    absl::MutexLock lock(&nodes_[i]->mutex);
    if (!written.ok()) nodes_[i]->history.NoteLost();
  }
}

absl::StatusOr<JobUsageView> JobUsage::Read(const fs::path& folder, const UsageQuery& query) {
  const std::map<int, fs::path> names = NodesIn(folder);
  size_t width = 0;
  for (const auto& [number, name] : names) {
    const auto ranks = NodeHistory::ReadRanks(name);
    if (ranks.ok() && !query.rank) width += WidthOf(*ranks);
  }
  TUTTI_ASSIGN_OR_RETURN(const size_t points, PointsFor(width, query));
  JobUsageView view;
  for (const auto& [number, name] : names) {
    const auto history = NodeHistory::Read(name);
    if (!history.ok() || !IsAsked(query, history->first_rank(), history->ranks())) continue;
    view.nodes.emplace_back(NodeOf(*history, points)).number = number;
  }
  if (query.rank && view.nodes.empty()) return NoSuchRank(*query.rank);
  return view;
}

}  // namespace tutti::service
