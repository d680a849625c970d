// Engine runs the negotiation's threads (negotiation.h tells the story).
#pragma once

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/comm/negotiation/execution/callbacks.h"
#include "runtime/comm/negotiation/execution/executor.h"
#include "runtime/comm/negotiation/execution/timeline_slot.h"
#include "runtime/comm/negotiation/negotiation.h"
#include "runtime/comm/negotiation/submissions.h"
#include "runtime/comm/rendezvous/control.h"

namespace tutti::comm {

class Engine final : public Negotiation, private Control::Listener {
 public:
  Engine(std::shared_ptr<Communicator> world, NegotiationOptions options);
  ~Engine() override { Shutdown().IgnoreError(); }

  OperationOr Submit(Submission submission) override;
  OperationOr AddProcessSet(std::vector<int> ranks) override;
  OperationOr RemoveProcessSet(int set) override;
  std::vector<int> ProcessSets() const override { return executor_->ProcessSets(); }
  absl::StatusOr<std::vector<int>> RanksOf(int set) const override {
    return executor_->RanksOf(set);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Placement placement() const override { return placement_; }
  int WaitingNewcomers() const override;
  absl::Status StartTimeline(const std::string& path, bool mark_cycles) override;
  absl::Status StopTimeline() override;
  Tuning tuning() const override;
  absl::Status Shutdown() override;
  std::shared_ptr<Communicator> GiveBack() override;

 private:
  static absl::Duration Now();

  bool Stop();

  void OnPayload(int from, const std::string& payload) override;
  void OnEnded(const absl::Status& error) override { End(error); }

  absl::Status CheckSubmission(const Submission& submission) const;
  OperationOr Enqueue(std::unique_ptr<Task> task);
  std::string NextName(const Request& request);

  void WakeThread() {  // with the mutex held
    awake_ = true;
    changed_.notify_all();
  }
  void RunThread();
  void PostReport(Report report);
  void PostOrders(int to, Orders orders);
  // Rank 0 alone calls these:
  void Lead(const Report& own, std::vector<std::pair<int, Report>> others);
  void Autotune();
  std::vector<absl::Duration> Silences();
  // All other ranks call this:
  void WatchRankZero();
  absl::Duration NextWake();

  void Follow(Orders orders);
  void Queue(Response response);  // with the mutex held
  void AwaitLeaveAck();
  void ReportStalls(std::vector<Stall> stalls);
  // Fails what is not agreed on with this, and all that comes; End: what is agreed on too.
  void Refuse(const absl::Status& status);
  void End(const absl::Status& status);
  void Finish(std::vector<std::unique_ptr<Task>> tasks, const absl::Status& status);

  const int rank_;
  const int size_;
  const Placement placement_;
  const std::weak_ptr<const Communicator> group_;  // the executor's, until the end
  const NegotiationOptions options_;
  Control* const control_;  // null in a group of one
  const absl::Duration peer_timeout_;
  TimelineSlot timeline_;
  std::atomic<bool> mark_cycles_ = false;

  // The negotiation thread's.
  std::unique_ptr<Coordinator> coordinator_;  // on rank 0
  std::optional<Tuner> tuner_;
  std::ofstream tuner_log_;
  uint64_t told_ = 0;  // of what was executed
  StallInspector watch_;

  mutable std::mutex mutex_;  // guards what follows, up to the threads
  std::condition_variable changed_;
  Submissions submissions_;
  Report outbox_;
  std::vector<std::pair<int, Report>> inbox_;
  std::map<std::string, uint64_t> unnamed_;
  Tuning tuning_;
  absl::Status end_;
  bool awake_ = false;  // the negotiation thread has something to do
  bool leaving_ = false;
  bool leave_ack_ = false;
  bool stopping_ = false;

  Callbacks callbacks_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<Communicator> world_;  // after the end
  std::thread thread_;
};

}  // namespace tutti::comm
