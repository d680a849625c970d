// JobTable holds the jobs that have not ended, and is the one place where an event is written and
// announced.
//
// Invariant: what is in memory is what the store has. Every state of a job is an event that Append
// or AnnounceInserted has told each listener of, once.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/scheduler/waiting_jobs.h"
#include "platform/service/jobs/event_listener.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class JobTable {
 public:
  using Jobs = std::map<std::string, std::unique_ptr<LiveJob>, std::less<>>;

  explicit JobTable(SharedState& state) : state_(state) {}
  // Call before the first event; the listener must outlive the table.
  void AddListener(EventListener* listener) { listeners_.push_back(listener); }

  // Rebuilds a job of an earlier service, from its last event and its launchers' reports.
  absl::StatusOr<LiveJob*> Rebuild(store::JobRecord record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Adds a job that has just come, and so has no children.
  LiveJob& Add(const store::JobRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Place(LiveJob& job, std::unique_ptr<PlacedJob> placed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Notes that it has got nodes: `placed` is set.
  void NotePlaced(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Removes a job that has ended. `job` is gone then.
  void Remove(const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  const Jobs& live() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return live_; }
  // Calls visit(const LiveJob&) under the lock for each job, by id, and lets others have it now and
  // then: one that comes meanwhile may be left out.
  template <typename Visit>
  void VisitLive(const Visit& visit) const ABSL_LOCKS_EXCLUDED(service_lock) {
    std::string last;  // the id of the one before; no job's is empty
    while (VisitSome(visit, last)) absl::SleepFor(kTurnOfOthers);
  }
  // Returns the jobs that have nodes, and those that have children.
  std::set<LiveJob*>& placed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return placed_; }
  const std::set<LiveJob*>& placed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return placed_;
  }
  std::set<LiveJob*>& flows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return flows_; }
  // Returns the jobs that wait for nodes of this machine.
  const scheduler::WaitingJobs& waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return waiting_;
  }
  // Notes what those wait for; what was noted before is forgotten.
  void NoteWaits(scheduler::Waits waits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    waits_ = std::move(waits);
  }
  // Returns what one of them waits for; null if nothing is known, or if it is no such job.
  const scheduler::Wait* WaitOf(const LiveJob& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return waits_.Of(job.record.job.id, waiting_);
  }
  // The jobs that are to be handed to a cluster: by compute, in the order in which they came.
  using ToHandOver = std::map<std::string, std::map<int64_t, LiveJob*>>;
  ToHandOver& to_hand_over() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return to_hand_over_; }
  void HandOverAgain(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { Enqueue(job); }
  // Returns the job of that id that has not ended, or null.
  LiveJob* Find(absl::string_view id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  LiveJob* FindBySequence(int64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the job whose present attempt that allocation is, or null; the same of one that has its
  // nodes.
  LiveJob* FindByAllocation(absl::string_view allocation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  LiveJob* FindPlaced(absl::string_view allocation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns whether an attempt to come takes over the outputs of this allocation.
  bool IsStillNeeded(absl::string_view allocation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  // Appends an event to the store and, if that was possible, to what is in memory.
  absl::Status Append(LiveJob& job, const Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Tells the listeners of the events with which the store has taken the job in; `events` as they
  // were given to Store::InsertJob, with their details.
  void AnnounceInserted(const store::JobRecord& record, std::vector<FirstEvent> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Puts the job back to Queued; it no longer has its nodes.
  absl::Status BeginAgain(LiveJob& job, const Step& end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Asks for the job's end, or ends it if it has not begun, which removes it; `why` is one line.
  absl::StatusOr<store::JobRecord> Cancel(LiveJob& job, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  static constexpr size_t kVisitsOfATurn = 256;  // a fraction of a millisecond

  // Visits those behind `last`, and sets it. Returns whether there are more.
  template <typename Visit>
  bool VisitSome(const Visit& visit, std::string& last) const ABSL_LOCKS_EXCLUDED(service_lock) {
    StateLock lock(state_);
    auto next = live_.upper_bound(last);
    for (size_t i = 0; i < kVisitsOfATurn && next != live_.end(); ++i, ++next) {
      visit(*next->second);
      last = next->first;
    }
    return next != live_.end();
  }
  // Keeps live_ and what is found by other ways than the id.
  LiveJob& Insert(std::unique_ptr<LiveJob> job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Puts the job into the queue that it waits in, or takes it out of it.
  void Enqueue(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Dequeue(const LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void Announce(const store::Job& job, const store::Event& event, const EventDetail& detail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  std::vector<EventListener*> listeners_;
  Jobs live_ ABSL_GUARDED_BY(service_lock);
  std::unordered_map<int64_t, LiveJob*> by_sequence_ ABSL_GUARDED_BY(service_lock);
  std::set<LiveJob*> placed_ ABSL_GUARDED_BY(service_lock);
  std::set<LiveJob*> flows_ ABSL_GUARDED_BY(service_lock);
  scheduler::WaitingJobs waiting_ ABSL_GUARDED_BY(service_lock);
  scheduler::Waits waits_ ABSL_GUARDED_BY(service_lock);
  ToHandOver to_hand_over_ ABSL_GUARDED_BY(service_lock);
};

// Returns how long the job has run; zero before it runs. By the clock since boot, so that who sets
// the wall's clock ends no job; by the wall's alone if the machine has been started anew since.
absl::Duration RunTimeOf(const SharedState& state, const LiveJob& job);

// Returns whether it goes on when this machine loses its power. On this machine its launchers do
// not, and it ends as lost whatever was noted between its start and its end.
bool OutlivesThisMachine(const LiveJob& job);

}  // namespace tutti::service
