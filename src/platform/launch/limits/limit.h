// Limit is something that the processes of a node are held to as long as they run, such as the time
// limit. The next one is a file like time_limit.cc and a line in limits.cc. Not thread-safe.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::launch {

// All processes of the node are to end.
struct StopOrder {
  absl::Status reason;
  std::optional<absl::Duration> grace;  // none: the plan's
};

class Limit {
 public:
  virtual ~Limit() = default;
  // Zero: now. InfiniteDuration: there is nothing to look at. `ending`: they have been told to end,
  // but some still run.
  virtual absl::Duration UntilNextLook(bool ending) const = 0;
  // Call when that is over. What of the limit is broken, if the whole node is to end for it.
  virtual std::optional<StopOrder> Look() = 0;
};

}  // namespace tutti::launch
