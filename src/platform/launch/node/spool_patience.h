// SpoolPatience limits how long processes may wait in their writes because the spool's disk fails,
// with nothing being delivered; then the job is ended.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::launch {

class SpoolPatience {
 public:
  explicit SpoolPatience(absl::Duration patience) : patience_(patience) {}

  // Call regularly. True once output has waited that long while `acknowledged`, the bytes that the
  // service has in all, stood still.
  bool RunsOut(bool output_waits, uint64_t acknowledged) {
    if (!output_waits || acknowledged != acknowledged_) until_.reset();
    acknowledged_ = acknowledged;
    if (!output_waits) return false;
    if (!until_) until_ = base::Deadline::After(patience_);
    return until_->Expired();
  }

 private:
  const absl::Duration patience_;
  uint64_t acknowledged_ = 0;
  std::optional<base::Deadline> until_;
};

}  // namespace tutti::launch
