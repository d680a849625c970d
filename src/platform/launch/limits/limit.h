// Limit is something that the processes of a node are held to as long as they run, such as the time
// limit. The next one is a file like time_limit.cc and a line in limits.cc. Not thread-safe.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::launch {

// The order that all processes of the node end.
struct StopOrder {
  absl::Status reason;
  std::optional<absl::Duration> grace;  // none: the plan's
};

class Limit {
 public:
  virtual ~Limit() = default;
  // Returns when Look is to be called next. Zero: now. InfiniteDuration: there is nothing to look
  // at. `ending`: the processes have been told to end, but some still run.
  virtual absl::Duration UntilNextLook(bool ending) const = 0;
  // Call it when that time is over. Returns an order if the limit is broken and the whole node is
  // to end for it.
  virtual std::optional<StopOrder> Look() = 0;
};

}  // namespace tutti::launch
