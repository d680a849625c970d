// Served is what workers and servers of parameters have in common: which server holds which bucket,
// and where all of them meet. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/stream.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/mailbox.h"
#include "runtime/parallel/servers/parameter_servers.h"

namespace tutti::parallel {

// Returns for each bucket, of so many bytes, which server holds it: the largest go first, each to
// whoever has least.
std::vector<int> OwnersOf(const std::vector<int64_t>& bytes, int servers);

// Says what goes before the tensors of a message, in fp64.
struct PushHead {
  double is_gradient = 0;  // 0: the worker has come to a meeting's end, and wants its first turn
  double stop = 0;         // it was asked to stop
  double loss = 0, count = 0, correct = 0;  // of the gradient's samples; the loss x samples
};
struct PullHead {
  double begins = 0;     // a step; 0: none is left
  double done = 0;       // the version; of a leg's end, the step at which all meet
  double staleness = 0;  // of the worker's last gradient
  double loss = 0, count = 0, correct = 0;  // of the others' gradients since its last turn
  double told = 0;                          // steps, which follow
  std::array<double, 2> steps = {};
};

// The two ways between a worker and a server.
struct Pair {
  std::unique_ptr<Mailbox> push, pull;
};

// Counts messages that have come, into whichever mailbox. Thread-safe.
class Arrivals {
 public:
  void Add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
    one_more_.notify_one();
  }
  // Waits for one, whose mailbox bounds that, and takes it from the count.
  void Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    one_more_.wait(lock, [this] { return count_ > 0; });
    --count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable one_more_;
  int64_t count_ = 0;
};

// Counts a rank's steps, and the time between meetings in which it did them. Thread-compatible.
class Pace {
 public:
  // Says that the ranks are between two meetings; returns whether they were at one until now.
  bool Begin() {
    if (std::exchange(between_, true)) return false;
    timer_.Lap();
    return true;
  }
  void End() {
    between_ = false;
    seconds_ += timer_.Lap();
  }
  void Add(int64_t steps) { steps_ += static_cast<double>(steps); }
  // Returns the steps of a second since it was last asked.
  double Take() {
    const double steps = std::exchange(steps_, 0), seconds = std::exchange(seconds_, 0);
    return seconds > 0 ? steps / seconds : 0;
  }

 private:
  bool between_ = false;
  LapTimer timer_;
  double steps_ = 0, seconds_ = 0;
};

// Opens those of this rank, by the servers' or the workers' order; all ranks call it. Messages from
// workers are counted.
absl::StatusOr<std::vector<Pair>> OpenPairs(comm::Communicator& ranks, const Layout& layout,
                                            base::Deadline deadline,
                                            const std::shared_ptr<Arrivals>& arrivals = nullptr);

class Served : public Strategy {
 public:
  const Layout& layout() const final { return options_.layout; }
  bool in_step() const final { return false; }
  void RequestStop() final { stop_requested_ = true; }

 protected:
  // `buckets` are all of the model's.
  Served(ParameterServersOptions options, const Buckets& buckets,
         std::unique_ptr<comm::Communicator> communicator);
  comm::Stream& ranks() final { return stream_; }

  int workers() const { return layout().replicas(); }
  int servers() const { return world_size() - workers(); }
  int clerk() const { return workers(); }  // the first server
  bool stop_requested() const { return stop_requested_; }
  const std::vector<size_t>& BucketsOf(int server) const {
    return held_[static_cast<size_t>(server)];
  }
  // Returns a later deadline, of a wait for others that take their steps in turn.
  base::Deadline WhileOthersCompute(base::Deadline deadline) const {
    return base::Deadline::After(2 * workers() * deadline.Remaining());
  }
  // Returns the entries of the model's state that no server holds, as rank 0's to write.
  State Unserved() const;
  // Gives all ranks rank 0's of these.
  absl::Status SynchronizeUnserved(base::Deadline deadline);
  // Takes the mean of the workers' running statistics. Of `own`, this rank's part of (loss x
  // samples, samples, right ones), adds those of the others to the result, and what `told` of them
  // this rank has heard before; and whether some rank wishes to stop.
  using Counts = std::array<double, 3>;
  absl::StatusOr<StepResult> Meet(const Counts& own, const Counts& told, base::Deadline deadline);

  const ParameterServersOptions options_;
  Pace pace_;

 private:
  std::vector<std::vector<size_t>> held_;  // by server
  std::set<std::string> trained_;          // names that servers hold
  std::atomic<bool> stop_requested_ = false;
  comm::Stream stream_;
};

// InvalidArgument: a server would hold nothing.
absl::Status CheckShares(const Buckets& buckets, int servers);

// Returns how large the parts are by which the model is shared out: what the options say of
// buckets, or what lets shares differ by an eighth at most, where no tensor is larger.
size_t PartBytes(const models::ModelImpl& model, const ParameterServersOptions& options);

absl::StatusOr<std::unique_ptr<Strategy>> MakeWorker(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline);
absl::StatusOr<std::unique_ptr<Strategy>> MakeServer(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline);

}  // namespace tutti::parallel
