#include "platform/launch/hooks/hook_list.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kWorthALine = absl::Seconds(1);

// Says in the log how long a hook took, if that was long.
void LogIfLong(const NodeHook& hook, absl::Duration took) {
  if (took < kWorthALine) return;
  spdlog::info("{} took {}", std::string(hook.name()),
               absl::FormatDuration(absl::Trunc(took, kWorthALine)));
}

}  // namespace

bool HookList::PreparesSlowly(const spec::LaunchPlan& plan) const {
  return std::any_of(hooks_.begin(), hooks_.end(),
                     [&](const auto& hook) { return hook->PreparesSlowly(plan); });
}

bool HookList::StartsSlowly(const spec::LaunchPlan& plan) const {
  return std::any_of(hooks_.begin(), hooks_.end(),
                     [&](const auto& hook) { return hook->StartsSlowly(plan); });
}

absl::Status HookList::Prepare(NodeContext& node, const std::atomic<bool>& cancelled) const {
  for (const auto& hook : hooks_) {
    const absl::Duration began = base::SteadyNow();
    TUTTI_RETURN_IF_ERROR(hook->Prepare(node, cancelled));
    LogIfLong(*hook, base::SteadyNow() - began);
  }
  return absl::OkStatus();
}

absl::Status HookList::BeforeStart(NodeContext& node, const std::atomic<bool>& cancelled) const {
  for (const auto& hook : hooks_) {
    const absl::Duration began = base::SteadyNow();
    TUTTI_RETURN_IF_ERROR(hook->BeforeStart(node, cancelled));
    LogIfLong(*hook, base::SteadyNow() - began);
  }
  return absl::OkStatus();
}

void HookList::Abandon(NodeContext& node) const {
  for (const auto& hook : hooks_) hook->Abandon(node);
}

void HookList::AfterEnd(const spec::LaunchPlan& plan) const {
  for (const auto& hook : hooks_) hook->AfterEnd(plan);
}

void HookList::Describe(const NodeContext& node, bool failed, Results& results,
                        nlohmann::json& left) const {
  for (const auto& hook : hooks_) hook->Describe(node, failed, results, left);
}

absl::Status HookList::AfterResults(NodeContext& node) const {
  absl::Status first;
  for (const auto& hook : hooks_) first.Update(hook->AfterResults(node));
  return first;
}

bool HookList::HasToStore(const spec::LaunchPlan& plan) const {
  return std::any_of(hooks_.begin(), hooks_.end(),
                     [&](const auto& hook) { return hook->HasToStore(plan); });
}

absl::Status HookList::Store(NodeContext& node, Storing how,
                             const std::atomic<bool>& cancelled) const {
  absl::Status first;
  for (const auto& hook : hooks_) first.Update(hook->Store(node, how, cancelled));
  return first;
}

void HookList::CleanUp(const spec::LaunchPlan& plan) const {
  for (const auto& hook : hooks_) hook->CleanUp(plan);
}

}  // namespace tutti::launch
