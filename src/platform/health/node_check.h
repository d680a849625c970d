// NodeCheck is the result of one check of a node: it can run jobs, cannot, or could not be looked
// at. Plain values.
#pragma once

#include <string>

namespace tutti::health {

struct NodeCheck {
  // kUnknown: it could not be looked at, from which nothing follows for the node.
  enum class Outcome { kWell, kIll, kUnknown };

  std::string name;  // "disk", "gpu"
  Outcome outcome = Outcome::kWell;
  std::string detail;    // one line: what there is, or what is wrong
  bool is_full = false;  // of a disk that is ill: all that it lacks is room

  bool ill() const { return outcome == Outcome::kIll; }
};

}  // namespace tutti::health
