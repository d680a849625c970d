#include "platform/engine/local/standby_launchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <atomic>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::engine {
namespace {

class StandbyLaunchersTest : public ::testing::Test {
 protected:
  // Writes down which plan was sent to it.
  StandbyLaunchers::Starter Shell() {
    return [this](int node, int stdin_fd) {
      base::ChildOptions options;
      options.arguments = {"/bin/bash", "-c",
                           "read -r plan || exit 3; echo \"$plan\" > " +
                               (folder_.path() / std::to_string(node)).string()};
      options.stdin_fd = stdin_fd;
      return base::ChildProcess::Start(options);
    };
  }
  static base::ChildProcess AwaitTaken(StandbyLaunchers& standbys, int node, const char* plan) {
    std::optional<Standby> taken;
    const auto has_plan = [&] {  // it is made by a thread of its own
      taken = standbys.Take(node);
      return taken && taken->SendPlan(plan);
    };
    if (!base::AwaitPatiently(absl::Seconds(30), has_plan)) std::abort();
    return std::move(taken->process);
  }

  const base::TemporaryDirectory folder_;
  std::atomic<pid_t> pid_ = 0;
};

TEST_F(StandbyLaunchersTest, EachNodesTakesItsPlanAndTheNextOneIsMade) {
  StandbyLaunchers standbys(2, Shell());
  for (const char* plan : {"/a/plan.json", "/b/plan.json"}) {
    base::ChildProcess taken = AwaitTaken(standbys, 1, plan);
    const auto ended = taken.Wait(base::Deadline::After(base::Patient(absl::Seconds(30))));
    ASSERT_TRUE(ended.ok() && ended->ok());
    EXPECT_EQ(*base::ReadFile(folder_.path() / "1"), std::string(plan) + "\n");
  }
  EXPECT_FALSE(standbys.Take(2).has_value());
}

TEST_F(StandbyLaunchersTest, OneThatIsTakenAndNotToldEnds) {
  StandbyLaunchers standbys(1, Shell());
  std::optional<Standby> taken;
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30),
                                   [&] { return (taken = standbys.Take(0)).has_value(); }));
  const pid_t pid = taken->process.pid();
  taken.reset();
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "0"));
}

// Where mounts are not shared, as in a container, those that have a namespace would not see it.
TEST_F(StandbyLaunchersTest, ThoseThatWaitedBeforeSomethingWasMountedEndAndAreMadeAnew) {
  const std::filesystem::path own = folder_.path() / "own", later = own / "later";
  std::filesystem::create_directory(own);
  if (::mount("tmpfs", own.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "may not mount";
  const absl::Cleanup unmount = [&] {
    ::umount2(later.c_str(), MNT_DETACH);
    ::umount2(own.c_str(), MNT_DETACH);
  };
  ASSERT_EQ(::mount(nullptr, own.c_str(), nullptr, MS_PRIVATE, nullptr), 0);
  std::filesystem::create_directory(later);
  StandbyLaunchers standbys(1, [&](int node, int stdin_fd) {
    auto child = Shell()(node, stdin_fd);
    if (child.ok()) pid_ = child->pid();
    return child;
  });
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return pid_ != 0; }));
  const pid_t before = pid_;
  ASSERT_EQ(::mount("tmpfs", later.c_str(), "tmpfs", 0, "size=1m"), 0);
  EXPECT_FALSE(standbys.Take(0).has_value());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return ::kill(before, 0) != 0; }));
  base::ChildProcess taken = AwaitTaken(standbys, 0, "/a/plan.json");
  EXPECT_NE(taken.pid(), before);
}

TEST_F(StandbyLaunchersTest, ThoseThatWaitEndWithTheObject) {
  {
    StandbyLaunchers standbys(1, [&](int node, int stdin_fd) {
      auto child = Shell()(node, stdin_fd);
      if (child.ok()) pid_ = child->pid();
      return child;
    });
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return pid_ != 0; }));
  }
  EXPECT_NE(::kill(pid_, 0), 0);
}

}  // namespace
}  // namespace tutti::engine
