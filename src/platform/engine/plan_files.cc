#include "platform/engine/plan_files.h"

#include "base/file.h"

namespace tutti::engine {

std::string PlanText(const Allocation& allocation, const spec::NodePart& node,
                     const std::filesystem::path& shared) {
  const bool alone = allocation.nodes.size() == 1;
  return alone ? spec::ToJson(spec::PlanFor(allocation.plan, node)) : spec::ToJson(node, shared);
}

absl::Status WriteSharedPlan(const Allocation& allocation, const std::filesystem::path& shared) {
  if (allocation.nodes.size() < 2) return absl::OkStatus();
  const std::string text = spec::SharedToJson(allocation.plan);
  const auto there = base::ReadFile(shared);
  if (there.ok() && *there == text) return absl::OkStatus();
  return base::ReplaceFile(shared, text, 0600);
}

}  // namespace tutti::engine
