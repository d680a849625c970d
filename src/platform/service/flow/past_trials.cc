#include "platform/service/flow/past_trials.h"

#include <spdlog/spdlog.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/trial.h"
#include "platform/service/flow/trial_metrics.h"

namespace tutti::service {
namespace {

constexpr int kTrialsOfSlice = 64;  // some tenths of a second, if they have reported a lot

// Returns the cost of a trial with that folder; no value at all if its folder cannot be read.
std::optional<std::optional<double>> ReadCost(const spec::Sweep& sweep,
                                              const std::filesystem::path& folder) {
  const auto reports = ReportsOf(folder, sweep.metric);
  if (!reports.values.empty()) return CostOf(sweep, flow::BestOf(sweep, reports.values));
  if (HasReadableLogs(folder)) return std::optional<double>();
  return std::nullopt;
}

}  // namespace

void PastTrials::ReadBehind(int64_t sequence) {
  auto trials = state_.store->UnreadTrials(sequence, kTrialsOfSlice);
  if (!trials.ok()) spdlog::error("trials of ended sweeps: {}", trials.status().ToString());
  if (!trials.ok() || trials->empty() || state_.ending) return;
  const std::string queue = absl::StrCat(trials->front().sweep, "/reports");
  state_.plan_work.Do(queue, [this, trials = *std::move(trials)] {
    ReadSome(trials);
    ReadBehind(trials.back().sequence);
  });
}

void PastTrials::ReadSome(const std::vector<store::UnreadTrial>& trials) {
  std::map<std::string, std::optional<spec::Sweep>> sweeps;
  std::vector<store::TrialOutcome> outcomes;
  for (const store::UnreadTrial& trial : trials) {
    const auto [sweep, is_new] = sweeps.try_emplace(trial.sweep);
    if (is_new) {
      const auto job = state_.store->GetJob(trial.sweep);
      if (job.ok()) sweep->second = job->job.spec.sweep;
    }
    if (!sweep->second) continue;  // it is being deleted
    if (state_.ending) return;
    const auto cost = ReadCost(*sweep->second, state_.files.FolderOf(trial.job));
    if (cost) outcomes.push_back({trial.job, *cost});
  }
  const absl::Status noted = state_.store->NoteTrials(outcomes, store::Durability::kCrash);
  if (!noted.ok()) spdlog::error("what trials have reported is not kept: {}", noted.ToString());
}

}  // namespace tutti::service
