#include "platform/service/allocation/launcher_silence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// What a cluster is given to say how it ended a job.
constexpr absl::Duration kVerdictLimit = absl::Minutes(1);

}  // namespace

// On a cluster nobody else tells of a launcher whose node is gone, maybe for long; here the engine
// sees whether it lives. One that was never heard of may be at work, cut off from us: it is stopped
// first, and is lost, so that its job may begin again, once it is seen to be gone. One here that
// was told to stop and says nothing is killed: another then delivers what it has left.
void GiveUpOnTheSilent(const SharedState& state, LiveJob& live, Effects& effects) {
  PlacedJob& job = *live.placed;
  const absl::Time now = state.clock->Now();
  const absl::Duration since_boot = state.clock->SinceBoot();
  const bool is_here = !job.placement.boot_id.empty();
  for (int node = 0; node < job.gang.size(); ++node) {
    if (job.gang.done(node)) continue;
    const absl::Duration last_word = std::max(job.nodes[node].last_word, job.started_at);
    if (job.stopped && since_boot - std::max(last_word, job.stopped_at) >
                           state.options.stop_grace + state.options.silence_limit) {
      effects.kills.push_back({{live.record.job.spec.compute, job.placement.allocation}, node});
      if (is_here && !job.gang.killed(node)) {
        job.gang.NoteKill(node);
        job.nodes[node].last_word = since_boot;
        continue;
      }
      if (!is_here) job.gang.NoteDeath(node, now);
      job.gang.GiveUp(node, "it was told to stop and has not been heard of since", now);
    } else if (job.started && job.gang.count(node) == 0 &&
               since_boot - last_word > state.options.report_limit) {
      const std::string reason = absl::StrCat(
          "its launcher has not reported within ", absl::FormatDuration(state.options.report_limit),
          is_here ? "" : " (does that node reach the service's address?)");
      is_here ? job.gang.GiveUp(node, reason, now) : job.gang.NoteSilence(node, reason, now);
    }
  }
}

// For a moment after its launchers' last words.
bool VerdictMayCome(const SharedState& state, const LiveJob& job) {
  if (job.record.job.spec.compute == "local" || job.placed->judged) return false;
  absl::Duration last_word = -absl::InfiniteDuration();
  for (const LiveNode& node : job.placed->nodes) last_word = std::max(last_word, node.last_word);
  return state.clock->SinceBoot() - last_word < kVerdictLimit;
}

}  // namespace tutti::service
