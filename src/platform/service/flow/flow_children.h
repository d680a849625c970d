// FlowChildren keeps what is known of the children of a pipeline or a sweep that has not ended, as
// the store and the children's logs have it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/event_listener.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

// Returns the id of that step's job, which says whose child it is.
std::string ChildId(const LiveJob& parent, absl::string_view step);

class FlowChildren final : public EventListener {
 public:
  FlowChildren(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // Rebuilds the children of a job of an earlier service; does nothing for a job without children.
  absl::Status Rebuild(LiveJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Takes in a child that is in the store; `values`: what a trial was given.
  void Adopt(LiveJob& parent, const store::JobRecord& record, flow::Values values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Keeps the last event of a child that ends, which is not live any more when it is looked at.
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Looks at all children that have not ended, and notes in the flow whether anything has changed.
  // A trial has ended once all that it has reported is known.
  absl::Status Refresh(LiveJob& parent, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  absl::StatusOr<const store::Event*> LastOf(const LiveChild& child) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Looks at a trial; true if it need not be looked at again.
  bool LookAtTrial(const LiveJob& sweep, const std::string& step, LiveChild& trial,
                   const store::Event& last, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Has a trial's metrics read on, by a task.
  void ReadMetrics(const LiveJob& sweep, const std::string& step, LiveChild& trial, bool has_ended,
                   Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Takes in what a task has read; what could not be read to its end is read again.
  // The outcome of a trial that has ended is in the store before it counts as ended here, so that
  // all are there once the sweep has ended.
  void NoteMetrics(const std::string& sweep, const std::string& step,
                   const std::shared_ptr<TrialMetrics>& metrics, const absl::StatusOr<bool>& read,
                   bool has_ended) ABSL_LOCKS_EXCLUDED(service_lock);
  // Notes a trial's end, and what it has reported.
  absl::Status EndTrial(const LiveJob& sweep, const std::string& step, LiveChild& trial)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const JobTable& table_;
};

}  // namespace tutti::service
