// How a child of a pipeline or a sweep comes to be: what is known of it beforehand, and its first
// events in the store.
#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/flow/step_key.h"
#include "platform/service/results/folder_content.h"
#include "platform/service/results/result_stamp.h"
#include "platform/service/service_core.h"
#include "spec/flow/binding.h"
#include "spec/site/data_map.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr size_t kTokenBytesOfChild = 32;

}  // namespace

// What can be found out of a step at leisure comes first: whether an earlier one did the same.
absl::Status ServiceCore::BeginStep(LiveJob& parent, const spec::Step& step, Effects& effects) {
  const std::string id = ChildId(parent, step.name);
  const auto [plan, is_new] = parent.flow->plans.try_emplace(step.name);
  const store::Job& job = parent.record.job;
  spec::JobSpec bound = spec::Bind(job.spec, step, [&](const std::string& sibling) {
    return files_.FolderOf(ChildId(parent, sibling)).native();
  });
  if (is_new) {
    effects.tasks.push_back([this, parent_id = job.id, step = step.name, bound = std::move(bound),
                             snapshot = step.snapshot, id] {
      const StepPlan made = PlanStep(bound, snapshot, id);
      absl::MutexLock lock(&mutex_);
      const auto found = live_.find(parent_id);
      if (found == live_.end()) return;
      found->second->flow->plans[step] = made;
      Wake();
    });
    return absl::OkStatus();
  }
  if (!plan->second.ready) return absl::OkStatus();
  const StepPlan made = plan->second;
  parent.flow->plans.erase(plan);
  return InsertChild(parent, step.name,
                     {.spec = std::move(bound), .snapshot = step.snapshot, .step_key = made.key},
                     made.reused_from);
}

StepPlan ServiceCore::PlanStep(const spec::JobSpec& job, const std::string& snapshot,
                               const std::string& id) {
  StepPlan plan{.ready = true};
  std::map<std::string, std::string> digests;
  bool known = job.reusable && job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, input] : job.inputs) {
    if (input.path.empty()) continue;
    std::error_code error;
    const bool ours = absl::StartsWith(input.path, files_.FolderOf("").native());
    if (ours && !std::filesystem::exists(input.path, error) && input.type != "uri_file") {
      // A step that wrote nothing into an output has left no folder.
      base::MakeDirectories(input.path).IgnoreError();
    }
    if (!known) continue;
    auto digest = spec::IsAddress(input.path) ? absl::StatusOr<std::string>("at " + input.path)
                                              : DigestOf(input.path);
    known = digest.ok();
    if (known) digests[name] = *std::move(digest);
  }
  if (!known) return plan;
  plan.key = flow::StepKey(job, snapshot, digests);
  const auto earlier = store_->CompletedWithKey(plan.key);
  if (!earlier.ok()) return plan;
  const std::filesystem::path from = files_.FolderOf(earlier->job.id), to = files_.FolderOf(id);
  const bool kept_any = std::filesystem::exists(from);
  if (kept_any && !ResultsAreAsStamped(from)) {
    spdlog::info("job {}: the results of {} have been changed since it ended, so it runs anew", id,
                 earlier->job.id);
    return plan;
  }
  const absl::Status copied = kept_any ? CopyContent(from, to) : base::MakeDirectories(to);
  if (copied.ok()) {
    Stamp(id);
    plan.reused_from = earlier->job.id;
  } else {
    spdlog::warn("job {}: the results of {} are not reused: {}", id, earlier->job.id,
                 copied.ToString());
    base::RemoveTree(to).IgnoreError();
  }
  return plan;
}

void ServiceCore::StampOnceReusable(const LiveJob& job, Effects& effects) {
  const store::Job& fixed = job.record.job;
  if (fixed.step_key.empty() || job.record.last.state != JobState::kCompleted) return;
  effects.tasks.push_back([this, id = fixed.id] { Stamp(id); });
}

void ServiceCore::Stamp(const std::string& id) {
  const absl::Status status = StampResults(files_.FolderOf(id));
  if (!status.ok()) spdlog::warn("job {} will not be reused: {}", id, status.ToString());
}

absl::Status ServiceCore::InsertChild(LiveJob& parent, const std::string& step, store::Job job,
                                      const std::string& reused_from) {
  job.id = ChildId(parent, step);
  if (const auto known = store_->GetJob(job.id); known.ok()) {
    AdoptChild(parent, *known);
    return absl::OkStatus();
  }
  job.created = clock_->Now();
  job.job_token = options_.random_hex(kTokenBytesOfChild);
  job.parent = parent.record.job.id;
  job.step = step;
  if (job.spec.kind == spec::JobKind::kCommand) {
    const std::string root = job.parent.substr(0, job.parent.find('.'));
    job.spec.environment_variables.emplace("AZUREML_ROOT_RUN_ID", root);
  }
  std::vector<store::Event> events = {
      {.time = job.created, .state = JobState::kQueued, .reason = "submitted"}};
  if (reused_from.empty()) {
    // What a life before this one has linked and not used would mix with its own results.
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(files_.FolderOf(job.id)));
  } else {
    const std::string detail = ToJson(Detail{.reused_from = reused_from});
    const std::string reason = absl::StrCat("reused: nothing has changed since ", reused_from);
    for (const JobState state : {JobState::kFinalizing, JobState::kCompleted}) {
      events.push_back({.time = job.created, .state = state, .reason = reason, .detail = detail});
    }
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, store_->InsertJob(job, events));
  spdlog::info("job {}: {}: {}", job.id, std::string(Name(record.last.state)), record.last.reason);
  AdoptChild(parent, record);
  if (IsEnd(record.last.state)) {
    Wake();
    return absl::OkStatus();
  }
  GoLive(record);
  Wake();
  return absl::OkStatus();
}

}  // namespace tutti::service
