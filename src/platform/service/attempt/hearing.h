// Hearing knows since when some launchers have been heard of without a long pause. In that time
// neither the service nor the network between them was away, so that one which was silent all along
// has a reason of its own. Times are since boot. Not thread-safe.
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace tutti::service {

class Hearing {
 public:
  // Notes that one of them was heard of. After more than `pause` the time begins anew.
  void Note(absl::Duration now, absl::Duration pause) {
    if (now - last_ > pause) since_ = now;
    last_ = std::max(last_, now);
  }
  // Returns since when they have been heard of until now: `now` itself, if none has been for more
  // than `pause`.
  absl::Duration Since(absl::Duration now, absl::Duration pause) const {
    return now - last_ > pause ? now : since_;
  }

 private:
  absl::Duration since_ = -absl::InfiniteDuration(), last_ = -absl::InfiniteDuration();
};

}  // namespace tutti::service
