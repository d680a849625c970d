#include "platform/scheduler/node_pool.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tutti::scheduler {

NodePool::NodePool(const std::vector<ClusterNode>& nodes, absl::Time now) : now_(now) {
  nodes_.reserve(nodes.size());
  for (const ClusterNode& node : nodes) {
    if (!by_name_.emplace(node.name, nodes_.size()).second) continue;
    if (node.has.cores > 0) open_.push_back(nodes_.size());
    nodes_.push_back({&node, Timeline(now, node.has)});
    most_.cores = std::max(most_.cores, node.has.cores);
    most_.memory_bytes = std::max(most_.memory_bytes, node.has.memory_bytes);
    most_.gpus = std::max(most_.gpus, node.has.gpus);
  }
  whole_ = total();
}

// Takes it for a second at least: a job past its end still holds its nodes.
void NodePool::Take(Node& node, const Resources& what, absl::Time end) {
  node.timeline.Take(what, now_, std::max(end, now_ + absl::Seconds(1)));
  if (node.is_whole) --whole_;
  node.is_whole = false;
}

int NodePool::Occupy(const RunningJob& job) {
  const int whole_before = whole_;
  for (size_t i = 0; i < job.nodes.size(); ++i) {
    const auto found = by_name_.find(job.nodes[i]);
    if (found == by_name_.end()) continue;
    Node& node = nodes_[found->second];
    Take(node, job.shares.empty() ? node.fixed->has : job.shares.at(i), job.expected_end);
    if (node.timeline.now().cores <= 0) std::erase(open_, found->second);
  }
  return whole_before - whole_;
}

int NodePool::Able(const PendingJob& job) {
  if (!job.share) return total();
  const auto [known, is_new] = able_.emplace(*job.share, 0);
  if (is_new) {
    known->second =
        static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(), [&](const Node& node) {
          return Fits(NeedOn(*node.fixed, job.share), node.fixed->has);
        }));
  }
  return known->second;
}

int NodePool::FreeFor(const PendingJob& job) const {
  if (!job.share) return whole_;
  return static_cast<int>(std::count_if(open_.begin(), open_.end(), [&](size_t i) {
    return Fits(NeedOn(*nodes_[i].fixed, job.share), nodes_[i].timeline.now());
  }));
}

std::vector<size_t> NodePool::Fitting(const PendingJob& job) const {
  if (!job.share && whole_ < job.node_count) return {};
  std::vector<size_t> fit;
  for (const size_t i : open_) {
    const Resources need = NeedOn(*nodes_[i].fixed, job.share);
    if (nodes_[i].timeline.HasRoom(need, now_, job.time_limit)) fit.push_back(i);
  }
  return fit;
}

void NodePool::Order(const PendingJob& job, std::vector<size_t>& fit) const {
  // What is kept for the head from some time on is left for no other job than one that ends before.
  const auto rank = [&](size_t i) {
    const Timeline& timeline = nodes_[i].timeline;
    const Resources need = NeedOn(*nodes_[i].fixed, job.share);
    const bool is_kept = !timeline.HasRoom(need, now_, absl::InfiniteDuration());
    Resources left;  // of whole nodes it is the same
    if (job.share) (left = timeline.now()) -= need;
    return std::make_tuple(nodes_[i].is_whole, !is_kept, left.gpus, left.cores, left.memory_bytes);
  };
  std::vector<std::pair<decltype(rank(0)), size_t>> ranked;
  ranked.reserve(fit.size());
  for (const size_t i : fit) ranked.emplace_back(rank(i), i);
  std::sort(ranked.begin(), ranked.end());
  std::transform(ranked.begin(), ranked.end(), fit.begin(), [](const auto& r) { return r.second; });
  if (job.avoid.empty()) return;
  std::stable_partition(fit.begin(), fit.end(), [&](size_t i) {
    return std::find(job.avoid.begin(), job.avoid.end(), nodes_[i].fixed->name) == job.avoid.end();
  });
}

std::optional<Start> NodePool::StartNow(const PendingJob& job) {
  const auto count = static_cast<size_t>(job.node_count);
  std::vector<size_t> fit = Fitting(job);
  if (fit.size() < count) return std::nullopt;
  Order(job, fit);
  Start start{job.id};
  for (size_t k = 0; k < count; ++k) {
    Node& node = nodes_[fit[k]];
    const Resources need = NeedOn(*node.fixed, job.share);
    start.nodes.push_back(node.fixed->name);
    if (job.share) start.shares.push_back(need);
    Take(node, need, now_ + job.time_limit);
  }
  std::erase_if(open_, [&](size_t i) { return nodes_[i].timeline.now().cores <= 0; });
  return start;
}

absl::Time NodePool::Earliest(const PendingJob& job) const {
  const auto count = static_cast<size_t>(job.node_count);
  std::vector<Window> windows;
  windows.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    node.timeline.AddWindows(NeedOn(*node.fixed, job.share), job.time_limit, windows);
  }
  if (windows.size() < count) return absl::InfiniteFuture();
  std::vector<absl::Time> firsts, lasts;
  firsts.reserve(windows.size());
  for (const Window& window : windows) {
    firsts.push_back(window.first);
    if (window.last != absl::InfiniteFuture()) lasts.push_back(window.last);
  }
  if (lasts.empty()) {
    std::nth_element(firsts.begin(), firsts.begin() + job.node_count - 1, firsts.end());
    return firsts[count - 1];
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  size_t over = 0;
  for (size_t i = 0; i < firsts.size(); ++i) {
    while (over < lasts.size() && lasts[over] < firsts[i]) ++over;
    if (i + 1 - over >= count) return firsts[i];
  }
  return absl::InfiniteFuture();
}

void NodePool::ReserveAt(const PendingJob& job, absl::Time start) {
  struct Candidate {
    absl::Time since;  // when it has had the room
    int left;          // cores, where it never has
    size_t index;
    bool operator<(const Candidate& other) const {
      return std::tie(other.since, other.left, index) < std::tie(since, left, other.index);
    }
  };
  const bool is_known = start != absl::InfiniteFuture();
  std::vector<Candidate> candidates;
  candidates.reserve(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Timeline& timeline = nodes_[i].timeline;
    const Resources need = NeedOn(*nodes_[i].fixed, job.share);
    const bool fits =
        is_known ? timeline.HasRoom(need, start, job.time_limit) : Fits(need, nodes_[i].fixed->has);
    if (!fits) continue;
    const absl::Time since = timeline.RoomSince(need, start);
    const bool is_endless = since == absl::InfiniteFuture();
    candidates.push_back({since, is_endless ? timeline.at_last().cores : 0, i});
  }
  const size_t count = std::min(candidates.size(), static_cast<size_t>(job.node_count));
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates.end());
  for (size_t i = 0; i < count; ++i) {
    Node& node = nodes_[candidates[i].index];
    node.timeline.Take(NeedOn(*node.fixed, job.share), start, start + job.time_limit);
  }
}

}  // namespace tutti::scheduler
