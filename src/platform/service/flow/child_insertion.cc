#include "platform/service/flow/child_insertion.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/flow/trial.h"
#include "platform/service/secrets/secrets.h"

namespace tutti::service {
namespace {

using store::JobState;

// With its end, if it has taken the results of an earlier job.
// Or for want of a secret, before it takes a node.
std::vector<FirstEvent> FirstEvents(absl::Time created, const std::string& reused_from,
                                    const std::string& without_secret) {
  std::vector<FirstEvent> events;
  const auto add = [&](JobState state, const std::string& reason, EventDetail detail) {
    events.emplace_back(store::Event{.time = created, .state = state, .reason = reason},
                        std::move(detail));
  };
  add(JobState::kQueued, "submitted", {});
  if (reused_from.empty() && !without_secret.empty()) {
    add(JobState::kFailed, without_secret, {.cause = Cause::kFailure});
  }
  if (reused_from.empty()) return events;
  const std::string reason = absl::StrCat("reused: nothing has changed since ", reused_from);
  for (const JobState state : {JobState::kFinalizing, JobState::kCompleted}) {
    add(state, reason, {.reused_from = reused_from});
  }
  return events;
}

// Returns what a trial was given; nothing of a step.
flow::Values ValuesIn(const LiveJob& parent, const spec::JobSpec& child) {
  const auto& sweep = parent.record.job.spec.sweep;
  return sweep ? ValuesOf(*sweep, child) : flow::Values();
}

}  // namespace

absl::Status ChildInsertion::Insert(LiveJob& parent, const std::string& step, store::Job job,
                                    const std::string& reused_from) {
  if (!state_.disk_is_full.empty()) return absl::ResourceExhaustedError(state_.disk_is_full);
  Complete(parent, step, job);
  std::vector<FirstEvent> events =
      FirstEvents(job.created, reused_from,
                  WhyWithoutSecrets(*state_.store, job.spec, store::Reader::kLockHolder));
  const auto record = state_.store->InsertJob(
      job, [&events](int64_t) { return EventsOf(events); }, store::Durability::kDeferred);
  if (absl::IsAlreadyExists(record.status())) return AdoptKnown(parent, job.id);
  TUTTI_RETURN_IF_ERROR(record.status());
  children_.Adopt(parent, *record, ValuesIn(parent, record->job.spec));
  if (!IsEnd(record->last.state)) table_.Add(*record);
  table_.AnnounceInserted(*record, std::move(events));
  state_.Wake();
  return absl::OkStatus();
}

absl::Status ChildInsertion::AdoptKnown(LiveJob& parent, const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord known,
                         state_.store->GetJob(id, store::Reader::kLockHolder));
  children_.Adopt(parent, known, ValuesIn(parent, known.job.spec));
  return absl::OkStatus();
}

void ChildInsertion::Complete(const LiveJob& parent, const std::string& step,
                              store::Job& job) const {
  job.id = ChildId(parent, step);
  job.created = state_.clock->Now();
  job.job_token = state_.options.random_hex(kJobTokenBytes);
  job.parent = parent.record.job.id;
  job.step = step;
  if (parent.flow->trials != nullptr) job.trial_values = ValuesIn(parent, job.spec);
}

}  // namespace tutti::service
