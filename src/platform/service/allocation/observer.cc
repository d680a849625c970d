#include "platform/service/allocation/observer.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// How long a launcher that recovers a spool has until the next one is started: ever longer, since
// what ended the first, as a folder that can be written to by nobody for some seconds, may last.
absl::Duration HasToDrain(int drains) {
  return absl::Seconds(std::min(1 << std::max(0, drains - 1), 4));
}

}  // namespace

void Observer::Observe(const std::string& compute,
                       const std::vector<engine::AllocationState>& states, Effects& effects) {
  if (compute == "local") state_.local_engine_observed = true;
  std::unordered_map<std::string_view, const engine::AllocationState*> by_id;
  by_id.reserve(states.size());
  for (const engine::AllocationState& state : states) by_id[state.id] = &state;
  for (const LiveJob* job : table_.placed()) {
    if (job->record.job.spec.compute != compute) continue;
    const bool begins =
        job->record.last.state == store::JobState::kProvisioning && !job->placed->started;
    if (begins) continue;  // Start is still to come
    const auto found = by_id.find(job->placed->placement.allocation);
    ObservePlaced(*job->placed, found == by_id.end() ? nullptr : found->second);
  }
  leaving_.ForgetUnseen(compute, by_id);
  state_.problems.ForgetAllocations([&](const AllocationAt& at) {
    return at.compute == compute && !by_id.contains(at.allocation);
  });
  for (const engine::AllocationState& state : states) {
    NoteLeft(compute, state);
    LiveJob* const job = table_.FindByAllocation(state.id);
    if (job == nullptr) {
      leaving_.Observe(compute, state, effects);
    } else if (job->placed == nullptr) {
      cluster_queue_.Observe(*job, state);
    }
  }
}

void Observer::NoteLeft(const std::string& compute, const engine::AllocationState& state) {
  const bool is_over = state.left.empty();
  if (is_over && left_.erase(state.id) == 0) return;
  if (!is_over) left_.insert(state.id);
  state_.problems.Note(absl::StrCat("allocation ", state.id, " does not end"),
                       is_over ? absl::OkStatus() : absl::UnavailableError(state.left),
                       {.at = {compute, state.id}});
}

void Observer::ObservePlaced(PlacedJob& job, const engine::AllocationState* state) {
  if (state == nullptr) job.judged = true;
  if (state != nullptr) job.left = state->left;
  if (state != nullptr && state->suspended) job.rested = state_.clock->SinceBoot();
  if (state != nullptr && state->waits) return;  // again: its engine will say what that means
  for (int node = 0; node < job.gang.size(); ++node) {
    const bool alive = state != nullptr && node < static_cast<int>(state->launcher_alive.size()) &&
                       state->launcher_alive[node];
    if (state != nullptr && !alive) {
      job.verdict = state->reason;
      job.lost = state->lost;
      job.disk_full = state->disk_full;
      job.judged = true;
    }
    if (job.gang.done(node)) continue;
    if (state == nullptr) {
      job.gang.GiveUp(node, "the engine has no trace of the allocation", state_.clock->Now());
    } else if (!alive) {
      NoteDeadLauncher(job, node);
    }
  }
}

void Observer::NoteDeadLauncher(PlacedJob& job, int node) {
  const absl::Time now = state_.clock->Now();
  const absl::Duration since_boot = state_.clock->SinceBoot();
  LiveNode& live = job.nodes[node];
  job.gang.NoteDeath(node, now);
  if (since_boot - live.last_drain < HasToDrain(live.drains)) return;
  if (live.drains >= state_.options.drain_attempts) {
    job.gang.GiveUp(node, "what it had not yet sent is lost", now);
    return;
  }
  live.last_drain = since_boot;
  ++live.drains;
  job.started = false;  // Start again: it delivers what the dead launcher left
  job.stopped = false;  // and one that had never begun must not begin now
}

}  // namespace tutti::service
