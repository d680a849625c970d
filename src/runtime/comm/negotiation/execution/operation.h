// Operation is the handle of one named collective: its caller waits for it and gets its output from
// it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/negotiation/coordination/request.h"

namespace tutti::comm {

class DeviceEvent;

// Gives the memory of an output whose size is known only now: `bytes` of them, for output number
// `part` with this shape; null if it has none. Called by the negotiation's thread, so it may not
// call the negotiation and wait.
using Allocate = std::function<void*(size_t part, const std::vector<int64_t>& shape, size_t bytes)>;

struct Output {
  void* data = nullptr;
  size_t bytes = 0;
  std::vector<int64_t> shape;
  std::unique_ptr<std::byte[]> owned;  // where nobody else gave memory
};

// Thread-safe. Everything but Wait and Done is to be read only when it is done.
class Operation {
 public:
  // Returns the operation's own end; DeadlineExceeded (and it goes on) when it is not done by then.
  absl::Status Wait(base::Deadline deadline);
  bool Done();
  // Waits, on GPUs, until its work is on a stream, in its place; returns where it ends there. Null
  // for what is done without a GPU. Errors as Wait's.
  absl::StatusOr<std::shared_ptr<const DeviceEvent>> WaitIssued(base::Deadline deadline);
  // Called when it is done, by a thread of the negotiation, or at once if it is done already. Once.
  void WhenDone(std::function<void()> then);

  const absl::Status& status() const { return status_; }
  std::vector<Output>& outputs() { return outputs_; }
  // Returns, for kAllToAll, rows received from every rank; for kAllGather, rows of every rank, part
  // after part.
  std::vector<int64_t>& received() { return received_; }
  // Returns, for kJoin, who joined last; for kAddSet, the new set.
  int64_t value() const { return value_; }
  void set_value(int64_t value) { value_ = value; }

  // Called by the negotiation, before Finish, for what is done on a GPU.
  void Issue(std::shared_ptr<const DeviceEvent> mark);
  // Called by the negotiation, one of them, once. Settle leaves the callback, if there is one, to
  // its caller: where no callback may be waited for.
  void Finish(const absl::Status& status);
  [[nodiscard]] std::function<void()> Settle(const absl::Status& status);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::shared_ptr<const DeviceEvent> mark_;
  std::function<void()> then_;
  absl::Status status_;
  std::vector<Output> outputs_;
  std::vector<int64_t> received_;
  int64_t value_ = -1;
};

}  // namespace tutti::comm
