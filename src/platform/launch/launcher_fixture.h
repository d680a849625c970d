// Runs real launchers for tests, each as a process of its own (this test program again, told by an
// environment variable to be a launcher; see launcher_test.cc), against a ServiceDouble.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/service_double.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

inline constexpr char kPlanVariable[] = "TUTTI_TEST_LAUNCHER_PLAN";
inline constexpr char kSpoolLimitVariable[] = "TUTTI_TEST_SPOOL_LIMIT";
inline constexpr char kDeliveryLimitVariable[] = "TUTTI_TEST_DELIVERY_LIMIT";  // milliseconds
inline constexpr char kMostProcessesVariable[] = "TUTTI_TEST_MOST_PROCESSES";
inline constexpr char kRankStartLimitVariable[] = "TUTTI_TEST_RANK_START_LIMIT";  // milliseconds

class LauncherFixture : public ::testing::Test {
 protected:
  LauncherFixture() : service(folder.path() / "service.json") {}
  ~LauncherFixture() override {
    // A test that failed half-way must not leave its processes behind.
    EndProcessesOf(AllocationOfTests(), "", base::Deadline::After(base::Patient(absl::Seconds(10))))
        .IgnoreError();
  }

  spec::LaunchPlan Plan(std::string command, int processes = 1) const {
    spec::LaunchPlan plan;
    plan.allocation_id = AllocationOfTests();
    plan.job_id = "job";
    plan.nodes = {{"n1", "127.77.0.1", 0, processes}};
    plan.command = std::move(command);
    plan.directory = (folder.path() / "allocation").string();
    plan.grace_seconds = 5;
    plan.service_file = (folder.path() / "service.json").string();
    plan.launcher_token = "launcher-token";
    plan.job_token = "abcd";
    plan.boot_id = base::BootId();
    return plan;
  }

  // Returns the plan of a node that has another to wait for.
  spec::LaunchPlan OneOfTwo(std::string command) const {
    spec::LaunchPlan plan = Plan(std::move(command));
    plan.nodes.push_back({"n2", "127.77.0.2", 1, 1});
    return plan;
  }

  base::ChildProcess Launch(const spec::LaunchPlan& plan, uint64_t spool_limit = 0) {
    const std::filesystem::path file = folder.path() / "plan.json";
    EXPECT_TRUE(base::WriteFileAtomic(file, spec::ToJson(plan)).ok());
    base::ChildOptions options;
    options.arguments = {"/proc/self/exe"};
    options.environment = base::CurrentEnvironment();
    options.environment[kPlanVariable] = file.string();
    if (spool_limit > 0) options.environment[kSpoolLimitVariable] = absl::StrCat(spool_limit);
    options.new_session = true;
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    return *std::move(child);
  }

  // With that LauncherOptions::delivery_limit.
  base::ChildProcess LaunchWithin(const spec::LaunchPlan& plan, absl::Duration delivery_limit) {
    ::setenv(kDeliveryLimitVariable,
             absl::StrCat(absl::ToInt64Milliseconds(delivery_limit)).c_str(), 1);
    base::ChildProcess launcher = Launch(plan);
    ::unsetenv(kDeliveryLimitVariable);
    return launcher;
  }

  // Has the service take nothing for that time of what a launcher has left to deliver: neither
  // output nor results.
  void TakeNothingFor(absl::Duration duration) {
    const base::Deadline full = base::Deadline::After(duration);
    ASSERT_TRUE(service.Await([&] { return full.Expired(); }, 2 * duration));
    EXPECT_TRUE(service.Events("finished").empty());
    EXPECT_TRUE(service.Files().empty());
    EXPECT_EQ(service.Output(0, "stdout"), "");
  }

  // Runs the plan to its end.
  base::ExitStatus Run(const spec::LaunchPlan& plan) {
    base::ChildProcess launcher = Launch(plan);
    return WaitFor(launcher);
  }
  static base::ExitStatus WaitFor(base::ChildProcess& launcher) {
    const auto status = launcher.Wait(base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_TRUE(status.ok()) << "the launcher does not end";
    return status.value_or(base::ExitStatus{});
  }

  // Whether a file of the test's folder has that in it.
  bool IsAnywhere(const std::string& value) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (!entry.is_regular_file()) continue;
      const auto content = base::ReadFile(entry.path());
      if (content.ok() && content->find(value) != std::string::npos) return true;
    }
    return false;
  }

  // Returns the kinds of the events that have arrived, in order.
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const auto& event : service.Events()) kinds.push_back(event["kind"]);
    return kinds;
  }

  // Returns whether every process of the allocation has ended.
  static bool NoProcessLeft() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      int pid = 0;
      if (absl::SimpleAtoi(entry.path().filename().string(), &pid) &&
          EnvironmentVariableOf(pid, "TUTTI_ALLOCATION_ID") == AllocationOfTests()) {
        return false;
      }
    }
    return true;
  }

  bool AwaitOutput(const std::string& text, int rank = 0, const std::string& stream = "stdout") {
    return service.Await(
        [&] { return service.Output(rank, stream).find(text) != std::string::npos; });
  }

  const base::TemporaryDirectory folder;
  ServiceDouble service;
};

}  // namespace tutti::launch
