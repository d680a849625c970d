#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/text/utf8.h"
#include "base/threads/start_thread.h"
#include "platform/health/node_look.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/rank_failure.h"

namespace tutti::launch {
namespace {

constexpr size_t kLongestIllness = 500;  // characters
constexpr absl::Duration kBeyondProgram = absl::Minutes(1);
// Between looks at what else is wanted.
constexpr absl::Duration kTurnOfWaiting = absl::Milliseconds(100);

health::NodeLook LookOf(const NodeContext& node) {
  return {.folder = NodeFolders(node.plan.directory).scratch(),
          .checks = *node.plan.checks,
          .gpus = node.facts.gpus};
}

// Findings says what is wrong with the node, and whether the disk which it shares is full.
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

// Returns whether the launcher is to end. Who comes next is to hear of that too.
bool IsToEnd(const NodeContext& node) {
  if (node.delivery->gone()) return true;
  if (!node.signals->Take()) return false;
  ::kill(::getpid(), SIGTERM);
  return true;
}

// One look at the node, by a thread of its own. Who gives it up does not wait for it: programs that
// it waits for are ended, but a disk may hang.
class Look {
 public:
  ~Look() { Abandon(); }
  void Begin(health::NodeLook look) {
    state_->begun = true;
    auto work = [state = state_, look = std::move(look)] {
      std::vector<health::NodeCheck> checks = health::LookAtNode(look, state->abandoned);
      absl::MutexLock lock(&state->mutex);
      state->checks = std::move(checks);
    };
    std::thread thread = base::StartThread(work);
    thread.joinable() ? thread.detach() : work();
  }
  void Abandon() {
    absl::MutexLock lock(&state_->mutex);  // so that who waits hears of it
    state_->abandoned = true;
  }
  // Waits until it has ended, was given up or has not begun; returns false if none of these comes
  // in time.
  bool Await(absl::Duration patience) const {
    absl::MutexLock lock(&state_->mutex);
    return state_->mutex.AwaitWithTimeout(absl::Condition(state_.get(), &State::IsOver), patience);
  }
  // Returns what it has found: nothing, if it has not ended.
  std::vector<health::NodeCheck> found() const {
    absl::MutexLock lock(&state_->mutex);
    return state_->checks.value_or(std::vector<health::NodeCheck>());
  }

 private:
  struct State {
    bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return !begun || abandoned || checks.has_value();
    }
    bool begun = false;  // of the launcher's thread
    std::atomic<bool> abandoned = false;
    mutable absl::Mutex mutex;
    std::optional<std::vector<health::NodeCheck>> checks ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // the thread's too
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

  // The results wait for it, at most for the limit of the site's program and a minute.
  void Describe(const NodeContext& node, bool failed, Results& /*results*/,
                nlohmann::json& left) override {
    if (!node.plan.checks || !failed) return;
    Look look;
    look.Begin(LookOf(node));
    const auto limit = absl::Seconds(node.plan.checks->timeout_seconds) + kBeyondProgram;
    const base::Deadline deadline = base::Deadline::After(limit);
    while (!look.Await(kTurnOfWaiting)) {
      if (IsToEnd(node)) return;
      if (!deadline.Expired()) continue;
      left["ill"] = absl::StrCat("a look at it has not come back for ", absl::FormatDuration(limit),
                                 " (a disk that hangs?)");
      return;
    }
    const std::string illness = FindingsOf(node.plan, look.found()).illness;
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
  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    const Findings found = AwaitLook(node.plan);
    if (cancelled) return absl::CancelledError("told to end while it looked at its node");
    if (!found.illness.empty()) return NodeIsIll(base::BoundedUtf8(found.illness, kLongestIllness));
    return found.full_disk.empty() ? absl::OkStatus() : SharedDiskIsFull(found.full_disk);
  }

 private:
  Findings AwaitLook(const spec::LaunchPlan& plan) const {
    look_->Await(absl::InfiniteDuration());
    return FindingsOf(plan, look_->found());
  }

  const std::shared_ptr<Look> look_;
};

}  // namespace

std::pair<std::unique_ptr<NodeHook>, std::unique_ptr<NodeHook>> MakeHealthHooks() {
  auto look = std::make_shared<Look>();
  return {std::make_unique<HealthHook>(look), std::make_unique<HealthVerdictHook>(look)};
}

}  // namespace tutti::launch
