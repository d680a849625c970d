// EndedTrials remembers what trials that have ended were given and have reported best, which does
// not change any more: so that a sweep of thousands is shown without reading their job files and
// their folders each time. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "platform/flow/next_of_sweep.h"

namespace tutti::service {

struct TrialFacts {
  flow::Values values;           // one for each parameter of its sweep
  std::optional<double> metric;  // nothing: it has reported none
};

class EndedTrials {
 public:
  explicit EndedTrials(size_t most = 100'000) : most_(most) {}

  // Finds a trial by its job's sequence, which no other job gets.
  std::optional<TrialFacts> Find(int64_t sequence) const {
    absl::MutexLock lock(&mutex_);
    const auto found = trials_.find(sequence);
    return found == trials_.end() ? std::nullopt : std::optional(found->second);
  }
  // Keeps a trial's facts. Once it holds `most` it forgets them all: they can be read again.
  void Keep(int64_t sequence, TrialFacts facts) {
    absl::MutexLock lock(&mutex_);
    if (trials_.size() >= most_) trials_.clear();
    trials_[sequence] = std::move(facts);
  }

 private:
  const size_t most_;
  mutable absl::Mutex mutex_;
  std::unordered_map<int64_t, TrialFacts> trials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
