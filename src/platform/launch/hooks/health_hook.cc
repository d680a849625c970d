#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

// What a look has found: what is wrong with the node, and that the disk which it shares is full.
struct Findings {
  std::string illness, full_disk;
};

// A disk that all nodes share is no node's own, but only from one node it may be read-only or gone.
Findings FindingsOf(const spec::LaunchPlan& plan, std::vector<health::NodeCheck> checks) {
  Findings findings;
  std::erase_if(checks, [&](const health::NodeCheck& check) {
    const bool is_of_all = check.is_full && !plan.shared_folder.empty();
    if (is_of_all) findings.full_disk = check.detail;
    return is_of_all;
  });
  findings.illness = health::IllnessOf(checks);
  return findings;
}

// One look at the node, in a thread of its own.
class Look {
 public:
  ~Look() {
    Abandon();
    Await();
  }
  // The plan outlives the object.
  void Begin(const spec::LaunchPlan& plan, health::NodeLook look) {
    thread_ = std::thread([this, &plan, look = std::move(look)] {
      findings_ = FindingsOf(plan, health::LookAtNode(look, abandoned_));
    });
  }
  // Ends the programs that it waits for.
  void Abandon() { abandoned_ = true; }
  const Findings& Await() {
    if (thread_.joinable()) thread_.join();
    return findings_;
  }

 private:
  std::atomic<bool> abandoned_ = false;
  std::thread thread_;
  Findings findings_;  // the thread's until it has ended
};

// Begins to look at a node that nobody else looks at, and does so once more when one of the job's
// processes has failed.
class HealthHook : public NodeHook {
 public:
  explicit HealthHook(std::shared_ptr<Look> look) : look_(std::move(look)) {}
  absl::string_view name() const override { return "health"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    if (node.plan.checks) look_->Begin(node.plan, LookOf(node));
    return absl::OkStatus();
  }
  void Abandon(NodeContext& /*node*/) override { look_->Abandon(); }

  // The results wait for it, at most for the limit of the site's program.
  void Describe(const NodeContext& node, bool failed, const Results& /*results*/,
                nlohmann::json& left) override {
    if (!node.plan.checks || !failed) return;
    const std::atomic<bool> goes_on = false;
    const std::string illness =
        FindingsOf(node.plan, health::LookAtNode(LookOf(node), goes_on)).illness;
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
    const Findings& found = look_->Await();
    if (cancelled) return absl::CancelledError("told to end while it looked at its node");
    if (!found.illness.empty()) return NodeIsIll(base::BoundedUtf8(found.illness, kLongestIllness));
    return found.full_disk.empty() ? absl::OkStatus() : SharedDiskIsFull(found.full_disk);
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
