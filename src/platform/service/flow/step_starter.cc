#include "platform/service/flow/step_starter.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/flow/step_key.h"
#include "platform/service/results/folder_content.h"
#include "platform/service/results/result_stamp.h"
#include "spec/data/data_map.h"
#include "spec/flow/binding.h"

namespace tutti::service {
namespace {

// A step that wrote nothing into an output has left no folder.
void MakeFolderOfEmptyOutput(const JobFiles& files, const spec::Input& input) {
  std::error_code error;
  const bool ours = absl::StartsWith(input.path, files.FolderOf("").native());
  if (!ours || input.type == "uri_file" || std::filesystem::exists(input.path, error)) return;
  base::MakeDirectories(input.path).IgnoreError();
}

std::vector<std::string> InputsOf(const spec::JobSpec& step) {
  std::vector<std::string> inputs;
  for (const auto& [name, input] : step.inputs) inputs.push_back(input.path);
  return inputs;
}

absl::StatusOr<std::string> DigestOfInput(const spec::Input& input, FileDigests& digests) {
  if (spec::IsAddress(input.path)) return "at " + input.path;
  // The digest is that of all of a folder, which may be much more than what matches.
  if (!input.pattern.empty()) return absl::UnimplementedError("of a pattern");
  return DigestOf(input.path, digests);
}

}  // namespace

absl::Status StepStarter::Start(LiveJob& parent, const spec::Step& step, Effects& effects) {
  if (!state_.disk_is_full.empty()) return absl::ResourceExhaustedError(state_.disk_is_full);
  const std::string id = ChildId(parent, step.name);
  const auto [plan, is_new] = parent.flow->plans.try_emplace(step.name);
  const store::Job& job = parent.record.job;
  spec::JobSpec bound = spec::Bind(job.spec, step, [&](const std::string& sibling) {
    return state_.files.FolderOf(ChildId(parent, sibling)).native();
  });
  if (is_new) {
    effects.plans.push_back(
        {job.id, InputsOf(bound),
         [this, parent_id = job.id, step = step.name, bound = std::move(bound),
          snapshot = step.snapshot, id] { MakePlan(parent_id, step, bound, snapshot, id); }});
    return absl::OkStatus();
  }
  if (!plan->second.ready) return absl::OkStatus();
  const StepPlan made = plan->second;
  parent.flow->plans.erase(plan);
  return insertion_.Insert(
      parent, step.name,
      {.spec = std::move(bound), .snapshot = step.snapshot, .step_key = made.key},
      made.reused_from);
}

void StepStarter::MakePlan(const std::string& parent, const std::string& step,
                           const spec::JobSpec& bound, const std::string& snapshot,
                           const std::string& id) {
  const StepPlan made = PlanOf(bound, snapshot, id);
  if (state_.ending) return;  // it may have been cut short: the next service makes it anew
  // What a life before this one has linked and not used would mix with its own results.
  if (made.reused_from.empty() && !state_.store->GetJob(id).ok()) {
    const absl::Status removed = base::RemoveTree(state_.files.FolderOf(id));
    if (!removed.ok()) spdlog::warn("job {}: {}", id, removed.ToString());
  }
  StateLock lock(state_);
  LiveJob* const live = table_.Find(parent);
  if (live == nullptr) return;
  live->flow->plans[step] = made;
  live->flow->changed = true;
  state_.Wake();
}

StepPlan StepStarter::PlanOf(const spec::JobSpec& job, const std::string& snapshot,
                             const std::string& id) {
  StepPlan plan{.ready = true};
  std::map<std::string, std::string> digests;
  bool known = job.reusable && job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, input] : job.inputs) {
    if (input.path.empty()) continue;
    MakeFolderOfEmptyOutput(state_.files, input);
    if (!known) continue;
    auto digest = DigestOfInput(input, digests_);
    known = digest.ok();
    if (known) digests[name] = *std::move(digest);
  }
  for (const auto& [name, output] : job.outputs) known &= !output.place.has_value();
  if (!known) return plan;
  plan.key = flow::StepKey(job, snapshot, digests);
  const auto earlier = state_.store->CompletedWithKey(plan.key);
  if (earlier.ok()) Reuse(earlier->job.id, id, plan);
  return plan;
}

void StepStarter::Reuse(const std::string& earlier, const std::string& id, StepPlan& plan) {
  const std::filesystem::path from = state_.files.FolderOf(earlier), to = state_.files.FolderOf(id);
  std::error_code error;
  const bool kept_any = std::filesystem::exists(from, error);
  if (error) {
    spdlog::warn("job {}: the results of {} are not reused: {}", id, earlier, error.message());
    return;
  }
  if (kept_any && !ResultsAreAsStamped(from)) {
    spdlog::info("job {}: the results of {} have been changed since it ended, so it runs anew", id,
                 earlier);
    return;
  }
  absl::Status copied = kept_any ? CopyContent(from, to) : base::MakeDirectories(to);
  if (copied.ok() && kept_any && !ResultsAreAsStamped(from)) {
    copied = absl::AbortedError("they are being removed");
  }
  if (copied.ok()) {
    StampForReuse(state_, id);
    plan.reused_from = earlier;
    return;
  }
  spdlog::warn("job {}: the results of {} are not reused: {}", id, earlier, copied.ToString());
  base::RemoveTree(to).IgnoreError();
}

}  // namespace tutti::service
