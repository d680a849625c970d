#include "platform/service/allocation/launcher_clocks.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/service/allocation/cordons.h"

namespace tutti::service {
namespace {

// A call takes seconds at most, so that a minute is no delay.
constexpr absl::Duration kMostOffset = absl::Minutes(1);
constexpr absl::string_view kCheck = "clock: ";

bool Agree(absl::Time one, absl::Time other) {
  return absl::AbsDuration(one - other) <= kMostOffset;
}

// "75 s ahead of the service's".
std::string WordsOf(absl::Duration offset) {
  return absl::StrCat(absl::ToInt64Seconds(absl::AbsDuration(offset)), " s ",
                      offset > absl::ZeroDuration() ? "ahead of" : "behind", " the service's");
}

// Returns whether more of the compute's other nodes agree with this one's clock than with the
// service's. `booted` and `booted_here`: when this machine was booted, by the two clocks.
bool OthersAgree(const JobTable& table, const std::string& compute, const std::string& name,
                 absl::Time booted, absl::Time booted_here)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  int with_node = 0, with_service = 0;
  for (const LiveJob* const job : table.placed()) {
    if (job->record.job.spec.compute != compute) continue;
    const PlacedJob& placed = *job->placed;
    for (size_t i = 0; i < placed.nodes.size(); ++i) {
      const std::optional<absl::Time> other = placed.nodes[i].booted;
      if (!other || placed.placement.nodes[i].name == name) continue;
      with_node += Agree(*other, booted) ? 1 : 0;
      with_service += Agree(*other, booted_here) ? 1 : 0;
    }
  }
  return with_node > with_service;
}

}  // namespace

void NoteClock(SharedState& state, const JobTable& table, const LiveJob& job, int node,
               absl::Time sent) {
  const Placement& placement = job.placed->placement;
  if (!placement.boot_id.empty()) return;
  const std::string& name = placement.nodes[node].name;
  const std::string& compute = job.record.job.spec.compute;
  const absl::Duration since_boot = state.clock->SinceBoot();
  const absl::Time booted = sent - since_boot, booted_here = state.clock->Now() - since_boot;
  std::optional<absl::Time>& before = job.placed->nodes[node].booted;
  const bool is_news = !before || !Agree(*before, booted);
  before = booted;

  ClusterCordons& cordons = state.cluster_cordons;
  const std::string* const cordon = cordons.Find(compute, name);
  const bool is_for_clock = cordon != nullptr && absl::StartsWith(*cordon, kCheck);
  const bool is_wrong = !Agree(booted, booted_here);
  const std::string words = WordsOf(booted - booted_here);
  if (!is_wrong || OthersAgree(table, compute, name, booted, booted_here)) {
    if (is_for_clock) cordons.Remove(compute, name);
  } else if (is_for_clock || (is_news && cordon == nullptr)) {
    AddClusterCordon(state, compute, name, absl::StrCat(kCheck, words));
  }
  const bool is_told = !is_wrong || cordons.Find(compute, name) != nullptr;
  state.problems.Note(absl::StrCat("the clocks of this machine and of node ", name, " of compute ",
                                   compute, " differ"),
                      is_told ? absl::OkStatus()
                              : absl::FailedPreconditionError(absl::StrCat("that one is ", words)),
                      {.job = job.record.job.id});
}

}  // namespace tutti::service
