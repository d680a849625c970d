#include "platform/service/flow/flow_runner.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {

FlowRunner::FlowRunner(SharedState& state, JobTable& table)
    : state_(state),
      table_(table),
      children_(state, table),
      insertion_(state, table, children_),
      steps_(state, table, insertion_),
      transitions_(state, table),
      pipelines_(state, transitions_, steps_),
      sweeps_(state, table, transitions_, insertion_) {
  table.AddListener(&children_);
}

void FlowRunner::AdvanceAll(Effects& effects) {
  // A child that ends may end its parent, whose parent comes later in no particular order.
  for (bool any = true; any;) {
    any = false;
    std::vector<std::string> parents;
    for (const LiveJob* job : table_.flows()) parents.push_back(job->record.job.id);
    for (const std::string& id : parents) {
      LiveJob* const parent = table_.Find(id);
      if (parent == nullptr) continue;
      const auto ended = Advance(*parent, effects);
      state_.problems.Note(absl::StrCat("job ", id, " cannot go on"), ended.status(), {.job = id});
      if (!ended.ok() || !*ended) continue;
      table_.flows().erase(parent);
      table_.Remove(*parent);
      any = true;
    }
  }
}

absl::StatusOr<bool> FlowRunner::Advance(LiveJob& parent, Effects& effects) {
  const store::Job& job = parent.record.job;
  const bool overdue = parent.record.started && !MustStop(parent.cause) &&
                       RunTimeOf(state_, parent) > job.spec.timeout;
  if (overdue) {
    TUTTI_RETURN_IF_ERROR(table_.Append(
        parent, {store::JobState::kFinalizing, "its time limit has passed; ending its children",
                 Cause::kTimedOut}));
  }
  TUTTI_RETURN_IF_ERROR(children_.Refresh(parent, effects));
  if (!parent.flow->changed) return false;
  parent.flow->changed = false;
  const auto ended = job.spec.kind == spec::JobKind::kSweep ? sweeps_.Advance(parent, effects)
                                                            : pipelines_.Advance(parent, effects);
  if (!ended.ok()) parent.flow->changed = true;  // and is tried again
  return ended;
}

}  // namespace tutti::service
