// SlurmEngineTest is the fixture of this room's tests: a Slurm engine over SlurmCommandsFake.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/engine/slurm/slurm_commands_fake.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "spec/types/service_endpoint.h"

namespace tutti::engine {

// Remembers how often each command was called, and what was said last to it.
class Listening final : public SlurmCommands {
 public:
  explicit Listening(SlurmCommands* commands) : commands_(commands) {}
  absl::StatusOr<CommandResult> Run(const std::vector<std::string>& arguments,
                                    base::Deadline deadline,
                                    const std::atomic<bool>& cancelled) override {
    {
      absl::MutexLock lock(&mutex_);
      last_[arguments.front()] = arguments;
    }
    auto result = commands_->Run(arguments, deadline, cancelled);
    absl::MutexLock lock(&mutex_);
    ++calls_[arguments.front()];
    return result;
  }
  std::vector<std::string> last(const std::string& program) {
    absl::MutexLock lock(&mutex_);
    return last_[program];
  }
  int calls(const std::string& program) {
    absl::MutexLock lock(&mutex_);
    return calls_[program];
  }
  // Returns how often each program was called, at one moment.
  std::map<std::string, int> calls() {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  // Waits until it has answered that often from now on, whatever came of it.
  void AwaitCalls(const std::string& program, int count) {
    AwaitCallsInAll(program, calls(program) + count);
  }
  void AwaitCallsInAll(const std::string& program, int count) {
    absl::MutexLock lock(&mutex_);
    const auto came = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return calls_[program] >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&came), base::Patient(absl::Seconds(20))));
  }

 private:
  SlurmCommands* const commands_;
  absl::Mutex mutex_;
  std::map<std::string, std::vector<std::string>> last_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
};

class SlurmEngineTest : public ::testing::Test {
 protected:
  SlurmEngineTest() { Open(); }

  void Open() {
    engine_.reset();
    SlurmEngineOptions options;
    options.compute.folder = root_.path() / "shared";
    options.compute.partition = "main";
    options.compute.memory = "1G";
    options.compute.qos = "standard";
    options.compute.priority_qos = {{"high", "urgent"}};
    options.launcher_file = launcher_file_;
    options.node_folder = node_folder_;
    options.program = "sha256:0123";
    options.storage_program = "sha256:4567";
    options.launcher = {"/bin/sh", "-c", "exec true"};
    options.compute.reach = reach_;
    options.collector = {"/bin/sh", "-c", "echo $$ \"$@\" >>\"$1.collectors\"; exec sleep 600",
                         "collector"};
    options.poll_interval = absl::Milliseconds(10);
    options.settling = absl::Milliseconds(50);
    options.slow_settling = absl::Milliseconds(100);
    options.pause = absl::Milliseconds(20);
    options.limit_pause = absl::Milliseconds(100);
    options.preferring = preferring_;
    options.saving = saving_;
    options.taking_back = taking_back_;
    options.forgetting = absl::Milliseconds(300);
    options.most_numbers = most_numbers_;
    engine_ = *SlurmEngine::Open(options, &listening_);
  }

  static Allocation Gang(const std::string& id, int size = 1) {
    Allocation allocation{.id = id};
    spec::LaunchPlan& plan = allocation.plan;
    plan.allocation_id = id;
    plan.job_id = "j";
    plan.launcher_token = "s3cret";
    for (int i = 0; i < size; ++i) {
      plan.nodes.push_back({"node", "0.0.0.0", i, 1});
      allocation.nodes.push_back({.node_index = i});
    }
    return allocation;
  }

  AllocationState State(const std::string& id) {
    const auto states = engine_->Observe();
    if (!states.ok()) return {.id = "?", .reason = std::string(states.status().message())};
    for (const AllocationState& state : *states) {
      if (state.id == id) return state;
    }
    return {.id = "?"};
  }
  template <typename Condition>
  AllocationState Await(const std::string& id, const Condition& holds) {
    AllocationState state;
    base::AwaitPatiently(absl::Seconds(20), [&] {
      state = State(id);
      return state.id == id && holds(state);
    });
    return state;
  }
  AllocationState AwaitRunning(const std::string& id) {
    return Await(id, [](const AllocationState& s) { return !s.waits && s.launcher_alive[0]; });
  }
  AllocationState AwaitEnd(const std::string& id) {
    return Await(id, [](const AllocationState& s) { return !s.waits && !s.launcher_alive[0]; });
  }

  // Waits until it did something so often.
  bool CountReaches(const std::string& program, int count) const {
    return base::AwaitPatiently(absl::Seconds(20), [&] { return slurm_.count(program) >= count; });
  }

  // Tells launchers from now on of a service at that address, and how to reach it.
  void OpenWithService(const std::string& address, spec::Reach reach = spec::Reach::kUnsaid) {
    launcher_file_ = root_.path() / "launcher.json";
    reach_ = reach;
    Announce(address);
    Open();
  }
  spec::LaunchPlan PlanOf(const std::string& id, int node) const {
    return *spec::ReadLaunchPlan(root_.path() / "shared" / id / absl::StrCat(node) / "plan.json");
  }
  // Lists the collectors that have been started for the allocation, a line each.
  std::vector<std::string> Collectors(const std::string& id) const {
    const auto text = base::ReadFile(root_.path() / "shared" / (id + ".collectors"));
    return absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty());
  }
  std::vector<std::string> AwaitCollectors(const std::string& id, size_t count) const {
    base::AwaitPatiently(absl::Seconds(20), [&] { return Collectors(id).size() >= count; });
    return Collectors(id);
  }

  // From now on the nodes share nothing with the service.
  void OpenUnshared() {
    launcher_file_ = root_.path() / "launcher.json";
    node_folder_ = "/scratch/my disk";
    Announce("http://10.1.0.1:6280");
    Open();
  }
  void Announce(const std::string& address, const std::string& certificate = "") {
    const spec::Endpoint service{address, "", certificate};
    ASSERT_TRUE(base::WriteFileAtomic(launcher_file_, spec::ToJson(service)).ok());
  }
  std::string Script(const std::string& id) const {
    return base::ReadFile(root_.path() / "shared" / id / "batch.sh").value_or("");
  }

  const base::TemporaryDirectory root_{"tutti-slurm"};
  std::filesystem::path launcher_file_;
  absl::Duration preferring_ = absl::Hours(1);
  absl::Duration saving_ = absl::Minutes(1);
  absl::Duration taking_back_ = absl::ZeroDuration();
  size_t most_numbers_ = 1000;
  std::string node_folder_;
  spec::Reach reach_ = spec::Reach::kUnsaid;
  SlurmCommandsFake slurm_;
  Listening listening_{&slurm_};
  std::unique_ptr<SlurmEngine> engine_;
};

}  // namespace tutti::engine
