// Executor is the thread that runs the collectives that were agreed on, one after the other, and
// the process sets' groups, which it makes and uses alone.
//
// Thread-safe. Callbacks come from its thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/coordination/stall_inspector.h"
#include "runtime/comm/negotiation/execution/device_work.h"
#include "runtime/comm/negotiation/execution/runner.h"
#include "runtime/comm/negotiation/execution/timeline_slot.h"

namespace tutti::comm {

class Executor {
 public:
  struct Job {
    Response response;
    std::vector<std::unique_ptr<Task>> tasks;  // one a unit; null where this rank has joined
    bool joined = false;                       // the response's set
  };
  struct Events {
    std::function<void()> on_executed;                            // after every job
    std::function<void(const absl::Status&)> on_failed;           // the first error of a group
    std::function<absl::Status(absl::Duration)> await_judgement;  // what ended the world, if soon
  };

  Executor(std::shared_ptr<Communicator> world, absl::Duration timeout, TimelineSlot* timeline,
           Events events);
  ~Executor() { Leave(); }

  void Push(Job job);
  // Fails what is not being run yet, and all that is pushed later, with this.
  void End(const absl::Status& status);
  // Waits until everything is run; false at the deadline.
  bool Drain(base::Deadline deadline);
  // Ends the thread, then leaves the subgroups. The world (null if it was given already).
  std::shared_ptr<Communicator> Leave();

  // Sets this rank's GPU: there is one for all (kHost: none is meant). InvalidArgument for another.
  absl::Status UseDevice(int device);
  uint64_t executed() const;
  bool busy() const;
  std::vector<int> ProcessSets() const;
  absl::StatusOr<std::vector<int>> RanksOf(int set) const;
  // Returns whether this rank is the first of a set.
  bool LeadsASet() const;
  // Returns what is being run, by the name of its first tensor, and since when.
  std::optional<std::pair<std::string, absl::Duration>> Running() const;

 private:
  void Loop();
  std::optional<Job> Next(std::unique_lock<std::mutex>& lock);
  void Execute(Job& job);
  void WatchDevice();
  void AwaitDevice();
  absl::Status RunGuarded(Job& job);
  absl::Status Run(Job& job);
  absl::StatusOr<Team*> TeamOf(const Job& job) const;
  absl::Status AddSet(const Job& job);
  absl::Status RemoveSet(int set);
  absl::Status RunOnDevice(Job& job, Team& team);
  absl::Status Abandon(const absl::Status& error);
  absl::Status Disbelieve(absl::string_view fault);
  absl::Status Judge(absl::Status error, const Team& team);
  static void Finish(Job& job, const absl::Status& status);

  const int rank_;
  const absl::Duration timeout_;
  TimelineSlot* const timeline_;
  const Events events_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::unique_ptr<Team>> teams_;  // the teams themselves are the thread's
  std::deque<Job> queue_;
  DeviceWork device_;     // the thread's
  bool running_ = false;  // a job, or what is on a GPU
  std::string running_name_;
  absl::Duration running_since_;
  uint64_t executed_ = 0;
  absl::Status end_;
  bool stopping_ = false;
  std::thread thread_;
};

// Returns what an error unit says, as a status (about the rank that it blames).
absl::Status ErrorOf(const Unit& unit);
absl::Status ErrorOf(const End& end);

}  // namespace tutti::comm
