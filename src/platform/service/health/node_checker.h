// NodeChecker is the interface that runs the checks of a node of this machine.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "platform/engine/engine.h"
#include "platform/health/node_check.h"

namespace tutti::service {

class NodeChecker {
 public:
  virtual ~NodeChecker() = default;
  // Returns what was found of it, by whatever thread may wait: it takes as long as disks and
  // programs do, for ever if they hang. What is found may be up to `age` old. Thread-safe.
  virtual std::vector<health::NodeCheck> Check(const engine::Node& node, absl::Duration age) = 0;
  // Does as much of that as takes little: it runs no program. Nothing that it does not tell of is
  // well. Thread-safe.
  virtual std::vector<health::NodeCheck> Glance(const engine::Node& /*node*/) { return {}; }
  // Returns the time from one glance at a node to the next; infinite: there are none.
  virtual absl::Duration glance_interval() const { return absl::InfiniteDuration(); }
  // Takes what the machine has now for what it is to have: a GPU that is gone is not missed any
  // more.
  virtual void Accept() = 0;
  // The service ends: programs that a look waits for are ended too.
  virtual void Abandon() {}
  // Returns the time from one look at an idle node to the next.
  virtual absl::Duration interval() const = 0;
  // Returns what a look may take: one that takes longer hangs, and the node with it.
  virtual absl::Duration patience() const = 0;
};

}  // namespace tutti::service
