// Moves what a node's processes write from their pipes to the spool. Where the spool takes no more,
// since the service takes nothing or the disk is full, processes wait in their writes, but not for
// ever. Not thread-safe.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/node/launcher_options.h"
#include "platform/launch/node/output_pipe.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/node/spool_patience.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class OutputForwarder {
 public:
  // All outlive the object. `news` is notified when the service has taken some.
  OutputForwarder(const spec::LaunchPlan& plan, const LauncherOptions& options, Spool* spool,
                  Delivery* delivery, Wakeup* news)
      : plan_(plan),
        options_(options),
        spool_(spool),
        delivery_(delivery),
        news_(news),
        patience_(options.spool_patience) {}

  // Returns whether the spool takes no more for now: nothing is to be read.
  bool waits() const { return waits_; }
  // Returns when Pump is to be called again, at the latest.
  absl::Duration UntilNextPump() const;

  // Moves what there is without waiting. ResourceExhausted once the spool has taken nothing for too
  // long.
  absl::Status Pump(const std::vector<OutputPipe*>& pipes);
  // Does the same once every writer has ended or was given up, whatever the spool's limit says;
  // waits for room on a full disk as long as running processes do. An error tells what was lost.
  absl::Status Drain(const std::vector<OutputPipe*>& pipes);

 private:
  // Moves what the pipes hold; true if the disk is full.
  bool MoveAll(const std::vector<OutputPipe*>& pipes);
  absl::Status DrainOne(OutputPipe& pipe);

  const spec::LaunchPlan& plan_;
  const LauncherOptions& options_;
  Spool* const spool_;
  Delivery* const delivery_;
  Wakeup* const news_;
  SpoolPatience patience_;
  bool waits_ = false;
};

}  // namespace tutti::launch
