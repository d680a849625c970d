#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "base/text/utf8.h"
#include "platform/health/node_look.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/rank_failure.h"

namespace tutti::launch {
namespace {

constexpr size_t kLongestIllness = 500;  // characters

health::NodeLook LookOf(const NodeContext& node) {
  return {.folder = NodeFolders(node.plan.directory).scratch(),
          .checks = *node.plan.checks,
          .gpus = node.facts.gpus};
}

// One look at the node, in a thread of its own.
class Look {
 public:
  ~Look() {
    Abandon();
    Await();
  }
  void Begin(health::NodeLook look) {
    thread_ = std::thread([this, look = std::move(look)] {
      illness_ = health::IllnessOf(health::LookAtNode(look, abandoned_));
    });
  }
  // Ends the programs that it waits for.
  void Abandon() { abandoned_ = true; }
  const std::string& Await() {
    if (thread_.joinable()) thread_.join();
    return illness_;
  }

 private:
  std::atomic<bool> abandoned_ = false;
  std::thread thread_;
  std::string illness_;  // the thread's until it has ended
};

// Begins to look at a node that nobody else looks at, and does so once more when one of the job's
// processes has failed.
class HealthHook : public NodeHook {
 public:
  explicit HealthHook(std::shared_ptr<Look> look) : look_(std::move(look)) {}
  absl::string_view name() const override { return "health"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    if (node.plan.checks) look_->Begin(LookOf(node));
    return absl::OkStatus();
  }
  void Abandon(NodeContext& /*node*/) override { look_->Abandon(); }

  // The results wait for it, at most for the limit of the site's program.
  void Describe(const NodeContext& node, bool failed, const Results& /*results*/,
                nlohmann::json& left) override {
    if (!node.plan.checks || !failed) return;
    const std::atomic<bool> goes_on = false;
    const std::string illness = health::IllnessOf(health::LookAtNode(LookOf(node), goes_on));
    if (!illness.empty()) left["ill"] = base::BoundedUtf8(illness, kLongestIllness);
  }

 private:
  const std::shared_ptr<Look> look_;
};

// Ends the look: the last of what prepares, so that the others need not wait for it.
class HealthVerdictHook : public NodeHook {
 public:
  explicit HealthVerdictHook(std::shared_ptr<Look> look) : look_(std::move(look)) {}
  absl::string_view name() const override { return "health verdict"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return plan.checks.has_value();
  }
  absl::Status Prepare(NodeContext& /*node*/, const std::atomic<bool>& cancelled) override {
    const std::string& illness = look_->Await();
    if (cancelled) return absl::CancelledError("told to end while it looked at its node");
    if (illness.empty()) return absl::OkStatus();
    return NodeIsIll(base::BoundedUtf8(illness, kLongestIllness));
  }

 private:
  const std::shared_ptr<Look> look_;
};

}  // namespace

std::pair<std::unique_ptr<NodeHook>, std::unique_ptr<NodeHook>> MakeHealthHooks() {
  auto look = std::make_shared<Look>();
  return {std::make_unique<HealthHook>(look), std::make_unique<HealthVerdictHook>(look)};
}

}  // namespace tutti::launch
