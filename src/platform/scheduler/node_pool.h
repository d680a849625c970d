// The nodes of one decision: what of each is free, from now on until all that runs has ended.
// Inside the room scheduler only. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/time/time.h"
#include "platform/scheduler/node_timeline.h"
#include "platform/scheduler/resources.h"
#include "platform/scheduler/scheduler.h"

namespace tutti::scheduler {

class NodePool {
 public:
  // `nodes` outlives this. One that is named twice counts once.
  NodePool(const std::vector<ClusterNode>& nodes, absl::Time now);

  int total() const { return static_cast<int>(nodes_.size()); }
  int whole() const { return whole_; }             // of them, those that nothing is in use of
  const Resources& most() const { return most_; }  // that one of them has, of each
  // Returns whether another job can start now, however small it is.
  bool has_room() const { return !open_.empty(); }

  // Takes in what runs, on those of its nodes that are here. Returns how many of them were whole
  // until now.
  int Occupy(const RunningJob& job);
  // Starts the job on as many nodes as it needs, all of which have room for it for its whole time:
  // those to avoid last. A share goes where the least is left then, and to a whole node only after
  // others. Nothing where they are too few.
  std::optional<Start> StartNow(const PendingJob& job);

  // Returns how many nodes could have the job if nothing ran.
  int Able(const PendingJob& job);
  // Returns how many have room for it at this moment.
  int FreeFor(const PendingJob& job) const;
  // Returns the first time from which on so many nodes as it needs have room for it; InfiniteFuture
  // if that is not known.
  absl::Time Earliest(const PendingJob& job) const;
  // Takes its place from then on, on nodes that have had the room for the shortest time: what has
  // it sooner is left to others. Where it is not known when, on those whose jobs have no end, if
  // they are needed, and of those where most is left.
  void ReserveAt(const PendingJob& job, absl::Time start);

 private:
  struct Node {
    const ClusterNode* fixed;
    Timeline timeline;
    bool is_whole = true;
  };

  void Take(Node& node, const Resources& what, absl::Time end);
  std::vector<size_t> Fitting(const PendingJob& job) const;
  void Order(const PendingJob& job, std::vector<size_t>& fit) const;

  const absl::Time now_;
  std::vector<Node> nodes_;  // in the cluster's order
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<size_t> open_;  // those with a core that is free now
  int whole_ = 0;
  Resources most_;
  std::map<Resources, int> able_;  // by share
};

}  // namespace tutti::scheduler
