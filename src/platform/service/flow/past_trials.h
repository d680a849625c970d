// PastTrials reads, once, what trials of ended sweeps have reported that no service has noted:
// those of sweeps that ended under a version which kept it in their folders alone. Until then they
// are shown without it.
#pragma once

#include <cstdint>
#include <vector>

#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class PastTrials {
 public:
  explicit PastTrials(SharedState& state) : state_(state) {}

  // Has all of them read, a few at a time, by a thread that nobody waits for. A trial whose folder
  // cannot be read is left to the next service.
  void Read() { ReadBehind(0); }

 private:
  void ReadBehind(int64_t sequence);
  void ReadSome(const std::vector<store::UnreadTrial>& trials);

  SharedState& state_;
};

}  // namespace tutti::service
