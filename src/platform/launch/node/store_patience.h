// How often, and for how long, a launcher asks a store again that is away, of inputs as of outputs.
// Thread-safe.
#pragma once

#include "absl/time/time.h"

namespace tutti::launch {

// StorePatience holds the times that tests make short.
struct StorePatience {
  absl::Duration first_pause = absl::Seconds(1);  // after a failure; as base::RetryPause has them
  absl::Duration longest_pause = absl::Minutes(1);
  absl::Duration limit = absl::Hours(24);  // then the store is given up
};

}  // namespace tutti::launch
