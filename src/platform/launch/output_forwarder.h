// Moves what a node's processes write from their pipes to the spool. Where the spool takes no more,
// since the service takes nothing or the disk is full, processes wait in their writes: the job goes
// on once there is room, and its own limits hold meanwhile. A spool that cannot be written to for
// another reason ends the job, after a while. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/launch/launcher_parts.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/output_pipe.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// SpoolPatience limits how long processes may wait in their writes because the spool's disk fails,
// with nothing being delivered; then the job is ended.
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

class OutputForwarder {
 public:
  // All outlive the object.
  OutputForwarder(const spec::LaunchPlan& plan, const LauncherOptions& options,
                  const LauncherParts& parts)
      : plan_(plan), options_(options), parts_(parts), patience_(options.spool_patience) {}

  // Returns whether the spool takes no more for now: nothing is to be read.
  bool waits() const { return waits_; }
  // Returns when Pump is to be called again, at the latest.
  absl::Duration UntilNextPump() const;

  // Moves what there is without waiting. An error once the spool could not be written to for too
  // long, a full disk aside: that is told by an event "held".
  absl::Status Pump(const std::vector<OutputPipe*>& pipes);
  // Does the same once every writer has ended or was given up, whatever the spool's limit says;
  // waits for room on a full disk, but not for long once the launcher has been told to end. An
  // error tells what was lost.
  absl::Status Drain(const std::vector<OutputPipe*>& pipes, bool told_to_end);

 private:
  // Moves what the pipes hold; the first error of the spool's disk.
  absl::Status MoveAll(const std::vector<OutputPipe*>& pipes);
  absl::Status DrainOne(OutputPipe& pipe, bool told_to_end);
  bool MayWait(const absl::Status& spool, bool told_to_end);
  // Tells the job's user that it waits for room on the disk, or does no longer.
  void TellOfFullDisk(const absl::Status& spool);

  const spec::LaunchPlan& plan_;
  const LauncherOptions& options_;
  const LauncherParts parts_;
  SpoolPatience patience_;
  bool waits_ = false;
  std::optional<base::Deadline> tells_at_;  // of a full disk
  bool told_ = false;
};

}  // namespace tutti::launch
