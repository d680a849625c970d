// Durability says what a write to the store must survive (store.h); WriteCounts counts the writes
// since it was opened. Both are plain values.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "base/metrics/histogram.h"

namespace tutti::store {

// Says what a write that has returned OK survives. kCrash: kill -9 of this process, but not the
// loss of power, unless a write of kPowerLoss came after it: what a power loss takes is always the
// last. kDeferred: the same until Store::AwaitDurable has returned OK for it, which its caller
// calls before anything follows from the write or anybody is told of it.
enum class Durability { kCrash, kDeferred, kPowerLoss };

// These bounds are for the time of a write, and of a sync of the disk.
inline constexpr std::array kWriteBounds = {
    absl::Microseconds(100), absl::Milliseconds(1),   absl::Milliseconds(5), absl::Milliseconds(25),
    absl::Milliseconds(100), absl::Milliseconds(500), absl::Seconds(2),      absl::Seconds(10)};

struct WriteCounts {
  base::Histogram times{kWriteBounds};  // of writes, from the call to its commit or its failure
  base::Histogram syncs{kWriteBounds};  // of those that writes wait for; those within a commit not
  int64_t failed = 0;                   // writes: the disk was full, or the file fails
  int64_t transactions = 0;             // which writes that come at the same time share
  int64_t waiting = 0;                  // writes, now, behind the transaction that is under way
};

}  // namespace tutti::store
