// What the engines see, and what the silence of a launcher means.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr absl::Duration kBetweenDrains = absl::Seconds(1);
constexpr absl::Duration kBetweenStops = absl::Seconds(30);
// What a cluster is given to say how it ended a job.
constexpr absl::Duration kVerdictLimit = absl::Minutes(1);

}  // namespace

void ServiceCore::Observed(const std::string& compute,
                           const std::vector<engine::AllocationState>& states, Effects& effects) {
  compute == "local" ? void(observed_once_ = true) : void(observed_clusters_.insert(compute));
  std::unordered_map<std::string_view, const engine::AllocationState*> by_id;
  by_id.reserve(states.size());
  for (const engine::AllocationState& state : states) by_id[state.id] = &state;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute != compute) continue;
    const bool begins = job->record.last.state == JobState::kProvisioning && !job->placed->started;
    if (begins) continue;  // Start is still to come
    const auto found = by_id.find(job->placed->placement.allocation);
    ObservedJob(*job->placed, found == by_id.end() ? nullptr : found->second);
  }
  std::erase_if(leaving_, [&](const auto& entry) {
    return entry.second.compute == compute && !by_id.contains(entry.first);
  });
  std::erase_if(complaints_, [&](const auto& entry) {
    const At& at = entry.second.subject.at;
    return at.compute == compute && !by_id.contains(at.allocation);
  });
  for (const engine::AllocationState& state : states) {
    LiveJob* const job = LiveJobOf(state.id);
    if (job == nullptr) {
      ObservedLeaving(compute, state, effects);
    } else if (job->placed == nullptr) {
      ObservedQueued(*job, state);
    }
  }
}

// `state` is null if the engine knows nothing of the allocation.
void ServiceCore::ObservedJob(PlacedJob& job, const engine::AllocationState* state) {
  const absl::Time now = clock_->Now();
  if (state == nullptr) job.judged = true;
  if (state != nullptr && state->waits) return;  // again: its engine will say what that means
  for (int node = 0; node < job.gang.size(); ++node) {
    const bool alive = state != nullptr && node < static_cast<int>(state->launcher_alive.size()) &&
                       state->launcher_alive[node];
    if (state != nullptr && !state->waits && !alive) {
      job.verdict = state->reason;
      job.lost = state->lost;
      job.judged = true;
    }
    if (job.gang.done(node)) continue;
    if (state == nullptr) {
      job.gang.GiveUp(node, "the engine has no trace of the allocation", now);
      continue;
    }
    if (alive) continue;
    LiveNode& live = job.nodes[node];
    job.gang.NoteDeath(node, now);
    if (base::IsWithin(kBetweenDrains, live.last_drain, now)) continue;
    if (live.drains >= options_.drain_attempts) {
      job.gang.GiveUp(node, "what it had not yet sent is lost", now);
      continue;
    }
    live.last_drain = now;
    ++live.drains;
    job.started = false;  // Start again: it delivers what the dead launcher left
    job.stopped = false;  // and one that had never begun must not begin now
  }
}

void ServiceCore::ObservedLeaving(const std::string& compute, const engine::AllocationState& state,
                                  Effects& effects) {
  const absl::Time now = clock_->Now();
  if (state.waits) {
    effects.stops.push_back({compute, state.id});
    return;
  }
  const bool alive = std::find(state.launcher_alive.begin(), state.launcher_alive.end(), true) !=
                     state.launcher_alive.end();
  if (!alive && IsStillNeeded(state.id)) {
    leaving_.erase(state.id);
    std::erase_if(complaints_, [&](const auto& entry) {
      return entry.second.subject.at.allocation == state.id;  // that it could not be stopped
    });
    return;
  }
  if (!alive) {
    effects.releases.push_back({compute, state.id});
    return;
  }
  Leaving& leaving =
      leaving_.try_emplace(state.id, Leaving{.compute = compute, .since = now}).first->second;
  EndLeaving(state, leaving, effects);
}

void ServiceCore::EndLeaving(const engine::AllocationState& state, Leaving& leaving,
                             Effects& effects) {
  const absl::Time now = clock_->Now();
  if (base::IsWithin(kBetweenStops, std::max(leaving.since, leaving.last_stop), now)) return;
  leaving.last_stop = now;
  if (now - leaving.since <= options_.stop_grace + options_.silence_limit) {
    effects.stops.push_back({leaving.compute, state.id});
    return;
  }
  for (size_t node = 0; node < state.launcher_alive.size(); ++node) {
    if (!state.launcher_alive[node]) continue;
    effects.kills.push_back({{leaving.compute, state.id}, static_cast<int>(node)});
  }
}

// On a cluster nobody else tells of a launcher whose node is gone, maybe for long; here the engine
// sees whether it lives. One that was never heard of may be at work, cut off from us: it is stopped
// first, and is lost, so that its job may begin again, once it is seen to be gone. One here that
// was told to stop and says nothing is killed: another then delivers what it has left.
void ServiceCore::GiveUpOnTheSilent(LiveJob& live, Effects& effects) {
  PlacedJob& job = *live.placed;
  const absl::Time now = clock_->Now();
  const bool is_here = !job.placement.boot_id.empty();
  for (int node = 0; node < job.gang.size(); ++node) {
    if (job.gang.done(node)) continue;
    const absl::Time last_word = std::max(job.nodes[node].last_word, job.started_at);
    if (job.stopped &&
        now - std::max(last_word, job.stopped_at) > options_.stop_grace + options_.silence_limit) {
      effects.kills.push_back({{live.record.job.spec.compute, job.placement.allocation}, node});
      if (is_here && !job.gang.killed(node)) {
        job.gang.NoteKill(node);
        job.nodes[node].last_word = now;
        continue;
      }
      if (!is_here) job.gang.NoteDeath(node, now);
      job.gang.GiveUp(node, "it was told to stop and has not been heard of since", now);
    } else if (job.started && job.gang.count(node) == 0 &&
               now - last_word > options_.report_limit) {
      const std::string reason = absl::StrCat(
          "its launcher has not reported within ", absl::FormatDuration(options_.report_limit),
          is_here ? "" : " (does that node reach the service's address?)");
      is_here ? job.gang.GiveUp(node, reason, now) : job.gang.NoteSilence(node, reason, now);
    }
  }
}

// For a moment after its launchers' last words.
bool ServiceCore::VerdictMayCome(const LiveJob& job) const {
  if (job.record.job.spec.compute == "local" || job.placed->judged) return false;
  absl::Time last_word = absl::InfinitePast();
  for (const LiveNode& node : job.placed->nodes) last_word = std::max(last_word, node.last_word);
  return base::IsWithin(kVerdictLimit, last_word, clock_->Now());
}

}  // namespace tutti::service
