// DiskEngine is an engine for tests whose whole state is on disk, as launchers and their processes
// are there when the service dies.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/engine/engine.h"
#include "spec/json/launch_plan.h"

namespace tutti::service {

// One folder per allocation: ran-I (a launcher has taken the plan), alive-I, spool-I, stop, plan-I.
// `starts` in the root has one line per launcher that began to run processes, for good.
class DiskEngine final : public engine::Engine {
 public:
  explicit DiskEngine(std::filesystem::path root, int nodes = 2)
      : root_(std::move(root)), node_count_(nodes) {
    std::filesystem::create_directories(root_);
  }
  engine::EngineTraits traits() const override { return {}; }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    std::vector<engine::Node> nodes;
    for (int i = 1; i <= node_count_; ++i) {
      nodes.push_back({.name = absl::StrCat("n", i),
                       .address = absl::StrCat("127.0.0.", i + 1),
                       .cores = cores,
                       .memory_bytes = int64_t{1} << 30,
                       .directory = (root_ / "scratch").native(),
                       .gpus = gpus});
    }
    return nodes;
  }
  absl::Status Start(const engine::Allocation& allocation) override {
    ++start_calls;
    if (!fail_start.ok()) return fail_start;
    const std::filesystem::path folder = root_ / allocation.id;
    std::filesystem::create_directories(folder);
    for (size_t i = 0; i < allocation.nodes.size(); ++i) {
      const std::string node = absl::StrCat(i);
      if (std::filesystem::exists(folder / ("alive-" + node))) continue;
      if (!std::filesystem::exists(folder / ("ran-" + node))) {
        Put(folder / ("plan-" + node),
            spec::ToJson(spec::PlanFor(allocation.plan, allocation.nodes[i])));
        AppendLine(root_ / "starts", absl::StrCat(allocation.id, " ", node));
        Put(folder / ("ran-" + node), "");
      } else {
        Put(folder / ("second-" + node), "");
      }
      Put(folder / ("alive-" + node), "");
    }
    return absl::OkStatus();
  }
  absl::Status Stop(const std::string& id, absl::Duration) override {
    ++stop_calls;
    if (!fail_stop.ok()) return fail_stop;
    if (std::filesystem::exists(root_ / id)) Put(root_ / id / "stop", "");
    return absl::OkStatus();
  }
  absl::Status Kill(const std::string& id, int node) override {
    ++kill_calls;
    if (!fail_stop.ok()) return fail_stop;
    if (!unkillable) std::filesystem::remove(root_ / id / absl::StrCat("alive-", node));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    if (!fail_observe.ok()) return fail_observe;
    std::vector<engine::AllocationState> states;
    for (const std::string& id : Allocations()) {
      engine::AllocationState state{.id = id};
      state.left = left;
      for (int i = 0; std::filesystem::exists(root_ / id / absl::StrCat("ran-", i)); ++i) {
        state.launcher_alive.push_back(
            std::filesystem::exists(root_ / id / absl::StrCat("alive-", i)));
        AddOccupied(root_ / id / absl::StrCat("plan-", i), state);
      }
      states.push_back(std::move(state));
    }
    return states;
  }
  absl::Status Release(const std::string& id) override { return base::RemoveTree(root_ / id); }

  std::vector<std::string> Allocations() const {
    std::vector<std::string> ids;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      if (entry.is_directory() && entry.path().filename() != "scratch") {
        ids.push_back(entry.path().filename());
      }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // Returns "ALLOCATION NODE", one per launcher that ran processes.
  std::vector<std::string> Starts() const { return Lines(root_ / "starts"); }
  const std::filesystem::path& root() const { return root_; }

  static void Put(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static void AppendLine(const std::filesystem::path& path, const std::string& line) {
    std::ofstream(path, std::ios::app) << line << "\n";
  }
  static std::vector<std::string> Lines(const std::filesystem::path& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  int start_calls = 0, stop_calls = 0, kill_calls = 0;
  bool unkillable = false;
  // The processors and GPUs of every node, for services that are opened from then on.
  std::vector<int> cores;
  std::vector<std::string> gpus;
  absl::Status fail_start, fail_stop, fail_observe;
  std::string left;  // of each allocation, as AllocationState has it

 private:
  static void AddOccupied(const std::filesystem::path& plan_file, engine::AllocationState& state) {
    const auto plan = spec::LaunchPlanFromJson(base::ReadFile(plan_file).value_or(""));
    if (!plan.ok()) return;
    engine::Node& node = state.occupied.emplace_back();
    node.name = plan->node().name;
    if (!plan->has_part()) return;
    node.cores = plan->cores;
    node.memory_bytes = plan->memory_bytes;
    node.gpus = plan->gpus;
  }

  const std::filesystem::path root_;
  const int node_count_;
};

}  // namespace tutti::service
