#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/service/allocation/node_health.h"
#include "platform/service/health/node_checker.h"

namespace tutti::service {
namespace {

constexpr size_t kMostGlancesAtOnce = 8;
// A tick comes as often, and a glance comes back a little later: it is due with the tick.
constexpr absl::Duration kMayBeEarly = absl::Seconds(1);

}  // namespace

// A node that is cordoned is looked at, which may clear it.
void NodeHealth::GlanceAtNodes(Effects& effects) {
  const absl::Duration interval = state_.options.node_checker->glance_interval();
  const absl::Duration seen = state_.clock->SinceBoot() - interval + kMayBeEarly;
  size_t begun = 0;
  for (size_t i = 0; i < state_.nodes.size() && begun < kMostGlancesAtOnce; ++i) {
    const engine::Node& node = state_.nodes[next_glance_++ % state_.nodes.size()];
    Watched& watched = nodes_[node.name];
    if (watched.queued || watched.runs || state_.cordons.contains(node.name)) continue;
    if (std::max(watched.last, watched.glanced) > seen) continue;
    watched.queued = true;
    effects.checks.push_back({node.name, [this, node] { Glance(node); }});
    ++begun;
  }
}

void NodeHealth::Glance(const engine::Node& node) {
  LookAt(
      node, [&] { return state_.options.node_checker->Glance(node); }, &NodeHealth::JudgeGlance,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
        nodes_[node.name].glanced = state_.clock->SinceBoot();
      });
}

// A full disk is not the node's illness alone: those who write meet it, and say so.
NodeHealth::Change NodeHealth::JudgeGlance(const std::string& node,
                                           const std::vector<health::NodeCheck>& checks) {
  Watched& watched = nodes_[node];
  std::vector<std::string> reasons;
  for (const health::NodeCheck& check : checks) {
    if (!check.ill() || check.is_full || watched.accepted.contains(check.name)) continue;
    watched.ill.insert(check.name);
    reasons.push_back(absl::StrCat(check.name, ": ", check.detail));
  }
  if (reasons.empty()) return nullptr;
  return ToCordon(node, absl::StrJoin(reasons, "; "), store::CordonAuthor::kCheck);
}

}  // namespace tutti::service
