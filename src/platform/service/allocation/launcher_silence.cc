#include "platform/service/allocation/launcher_silence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// A cluster has this long to say how it ended a job.
constexpr absl::Duration kVerdictLimit = absl::Minutes(1);

// A launcher that gives signs of life is lost once so many of them are missing, while others are
// heard of without so long a pause; a gang of which nobody is heard of, as one behind a part of the
// network that is away, only after many more; where nobody at all is heard of, after a day.
constexpr double kMissingBeats = 5, kPauseInBeats = 2.5, kMissingOfAll = 30;
constexpr absl::Duration kAlone = absl::Hours(24);
constexpr absl::Duration kBeat = absl::Minutes(1);           // of launchers that promise nothing
constexpr absl::Duration kLongestStoring = absl::Hours(25);  // launchers end it after 24
// Between two looks at the jobs, which are never so far apart while it runs
// (observation_schedule.cc); after a longer one the service was away itself.
constexpr absl::Duration kGap = absl::Seconds(30);

absl::Duration PauseOf(absl::Duration beat) {
  return (beat > absl::ZeroDuration() ? beat : kBeat) * kPauseInBeats;
}

bool IsLastOfItsGang(const Gang& gang, int node) {
  for (int other = 0; other < gang.size(); ++other) {
    if (other != node && !gang.done(other)) return false;
  }
  return true;
}

// Returns who was heard of all the time in which the launcher of that node was silent for too long;
// "" if that is not so.
std::string RanksItWasSilentBeside(const SharedState& state, const LiveJob& live, int node)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  const PlacedJob& job = *live.placed;
  const absl::Duration beat = job.gang.beat(node), now = state.clock->SinceBoot();
  if (beat == absl::ZeroDuration() || job.judged || MustStop(live.cause)) return "";
  // What was before the last of these tells nothing.
  const absl::Duration silent_since =
      std::max({job.nodes[node].last_word, job.started_at, job.rested, state.awake_since});
  if (now - silent_since <= beat * kMissingBeats) return "";
  const auto is_lost_beside = [&](const Hearing& hearing, double beats) {
    return now - std::max(silent_since, hearing.Since(now, PauseOf(beat))) > beat * beats;
  };
  const bool is_last = IsLastOfItsGang(job.gang, node);
  if (!is_last && is_lost_beside(job.hearing, kMissingBeats)) return "others of the job";
  const auto of_compute = state.hearings.find(live.record.job.spec.compute);
  if (of_compute != state.hearings.end() &&
      is_lost_beside(of_compute->second, is_last ? kMissingBeats : kMissingOfAll)) {
    return "those of other jobs";
  }
  return now - silent_since > kAlone ? "this service" : "";
}

// One whose ranks have all ended may have results left, which others bring once the cluster has
// ended it; else the job's other processes wait for nobody.
void GiveUpTheLost(const SharedState& state, LiveJob& live, int node, absl::string_view beside,
                   Effects& effects) {
  PlacedJob& job = *live.placed;
  const absl::Duration now = state.clock->SinceBoot();
  const absl::Duration silence = now - job.nodes[node].last_word;
  if (live.record.last.state == store::JobState::kFinalizing) {
    effects.kills.push_back({{live.record.job.spec.compute, job.placement.allocation}, node});
    job.nodes[node].last_word = now;  // so long later once more
    return;
  }
  const absl::Time since = state.clock->Now() - silence;
  job.gang.NoteSilence(
      node,
      absl::StrCat("its launcher has not been heard of since ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", since, absl::UTCTimeZone()), ", for ",
                   absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1))), ", while ", beside,
                   beside == "this service" ? " was there for it" : " were"),
      state.clock->Now());
}

}  // namespace

void NoteWord(const SharedState& state, LiveJob& live, int node) {
  live.placed->nodes[node].last_word = state.clock->SinceBoot();
}

void NoteTaken(SharedState& state, LiveJob& live, int node) {
  PlacedJob& job = *live.placed;
  const absl::Duration now = state.clock->SinceBoot();
  const absl::Duration pause = PauseOf(job.gang.beat(node));
  job.hearing.Note(now, pause);
  state.hearings[live.record.job.spec.compute].Note(now, pause);
}

void NoteLook(SharedState& state) {
  const absl::Duration now = state.clock->SinceBoot();
  if (now - state.last_look > kGap) state.awake_since = now;
  state.last_look = now;
}

// On a cluster nobody else tells of a launcher whose node is gone, maybe for long; here the engine
// sees whether it lives; a cluster may never tell of one of a gang that has died (srun waits for it
// where Slurm's word of that was lost), so that it is lost if it promised signs of life and gives
// none while others do. One that was never heard of may be at work, cut off from us: it is stopped
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
    // One whose job's chief has ended well brings its outputs to their stores, and has nothing to
    // say meanwhile.
    const bool is_storing = MayStoreLong(live) && job.gang.AllExited(node);
    if (is_storing && since_boot - last_word < kLongestStoring) continue;
    if (job.stopped && since_boot - std::max(last_word, job.stopped_at) >
                           state.options.stop_grace + state.options.silence_limit) {
      effects.kills.push_back({{live.record.job.spec.compute, job.placement.allocation}, node});
      if (is_here && !job.gang.killed(node)) {
        job.gang.NoteKill(node);
        job.nodes[node].last_word = since_boot;
        continue;
      }
      if (is_here && !job.left.empty()) continue;  // its containers go first
      if (!is_here) job.gang.NoteDeath(node, now);
      job.gang.GiveUp(node, "it was told to stop and has not been heard of since", now);
    } else if (job.started && job.gang.count(node) == 0 &&
               since_boot - last_word > state.options.report_limit) {
      const std::string reason = absl::StrCat(
          "its launcher has not reported within ", absl::FormatDuration(state.options.report_limit),
          is_here ? "" : " (does that node reach the service's address?)");
      is_here ? job.gang.GiveUp(node, reason, now) : job.gang.NoteSilence(node, reason, now);
    } else if (const std::string beside = RanksItWasSilentBeside(state, live, node);
               !beside.empty()) {
      GiveUpTheLost(state, live, node, beside, effects);
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
