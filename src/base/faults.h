// Faults collects what many checks find wrong with something that a user wrote, so that all of it
// is fixed at once. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tutti::base {

class Faults {
 public:
  // Adds each line of the message as a fault; OK has none.
  void Add(const absl::Status& status);

  bool empty() const { return lines_.empty(); }
  // Returns each fault once, a line each, in the order in which they were added. ResourceExhausted
  // if all were that, else InvalidArgument; OK without any.
  absl::Status status() const;

 private:
  std::vector<std::string> lines_;
  bool all_exhausted_ = true;
};

}  // namespace tutti::base
