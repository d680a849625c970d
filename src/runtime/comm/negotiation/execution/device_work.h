// DeviceWork runs an executor's responses on its GPU: those that were agreed on become NCCL's work
// on one stream, in the order told, which is the same on all ranks, whatever the process sets. So
// no kernel waits for one that another rank has put behind it.
//
// An operation is issued when its work is on the stream, and the framework may put behind it what
// reads the result; it is done when the GPU is. In between it is watched: a lost rank ends NCCL's
// kernels, which would wait for ever.
//
// All but Use is for the executor's thread alone.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "runtime/comm/collective/nccl/device_stream.h"
#include "runtime/comm/collective/nccl/nccl_group.h"
#include "runtime/comm/negotiation/execution/fusion_pack.h"
#include "runtime/comm/negotiation/execution/runner.h"
#include "runtime/comm/negotiation/execution/timeline_slot.h"

namespace tutti::comm {

class DeviceWork {
 public:
  using Tasks = std::vector<std::unique_ptr<Task>>;
  // What an error of a team is to its operations.
  using Judge = std::function<absl::Status(const absl::Status& error, const Team& team)>;

  explicit DeviceWork(TimelineSlot* timeline) : timeline_(timeline) {}

  // Thread-safe.
  absl::Status Use(int device);

  // Puts it on the stream and keeps the tasks. An error leaves them; it is the team's
  // device_fault, alike for all its ranks, or else what ends the team.
  absl::Status Issue(Team& team, const Response& response, Tasks& tasks, base::Deadline deadline);
  bool busy() const { return !in_flight_.empty(); }
  // Ends the operations that the GPU has done, and those whose team is at its end.
  void Look(const Judge& judge);

 private:
  struct InFlight {
    Team* team;
    Tasks tasks;
    std::shared_ptr<const DeviceEvent> mark;
    base::Deadline deadline;
  };

  absl::Status BringUp(Team& team, base::Deadline deadline);
  absl::Status Prepare();
  absl::Status Call(Team& team, const Response& response, const Tasks& tasks,
                    base::Deadline deadline);
  absl::StatusOr<std::vector<Piece>> Pieces(const Response& response, const Tasks& tasks);
  absl::Status LookAt(const InFlight& work, bool& over);

  TimelineSlot* const timeline_;
  std::atomic<int> device_ = kHost;
  std::shared_ptr<const NcclLibrary> nccl_;
  std::unique_ptr<DeviceStream> stream_;
  std::deque<InFlight> in_flight_;
};

}  // namespace tutti::comm
