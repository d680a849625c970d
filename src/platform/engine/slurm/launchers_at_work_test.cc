// Covers: launchers_at_work.cc, platform/engine/node_files.cc.
#include "platform/engine/slurm/launchers_at_work.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class LaunchersAtWorkTest : public ::testing::Test {
 protected:
  fs::path Node(const char* index) const {
    const fs::path node = folder_.path() / index;
    EXPECT_TRUE(base::MakeDirectories(node).ok());
    return node;
  }
  base::UniqueFd Work(const char* index) const {
    EXPECT_TRUE(base::ReplaceFile(Node(index) / "started", "").ok());
    auto lock = base::Open(Node(index) / kLauncherLock, O_RDWR | O_CREAT);
    EXPECT_TRUE(lock.ok() && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0);
    return *std::move(lock);
  }
  LaunchersAtWork::Found Await(LaunchersAtWork& launchers, size_t at_work) const {
    LaunchersAtWork::Found found;
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      const auto told = launchers.Of("a");
      if (!told) return false;
      found = *told;
      return static_cast<size_t>(std::count(found.at_work.begin(), found.at_work.end(), true)) ==
             at_work;
    }));
    return found;
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(LaunchersAtWorkTest, WhoHoldsItsLockIsAtWorkUntilItDoesNot) {
  LaunchersAtWork launchers(absl::Milliseconds(10));
  EXPECT_FALSE(launchers.Of("a").has_value());
  {
    const base::UniqueFd first = Work("0"), third = Work("2");
    Node("1");  // where none has begun
    launchers.Watch("a", folder_.path(), 3);
    const LaunchersAtWork::Found found = Await(launchers, 2);
    EXPECT_THAT(found.at_work, ElementsAre(true, false, true));
    EXPECT_TRUE(found.any_began);
    ASSERT_TRUE(base::ReplaceFile(Node("2") / "done", "").ok());
    EXPECT_THAT(Await(launchers, 1).at_work, ElementsAre(true, false, false));
  }
  EXPECT_TRUE(Await(launchers, 0).any_began);
  launchers.Forget("a");
  EXPECT_FALSE(launchers.Of("a").has_value());
}

TEST_F(LaunchersAtWorkTest, SaysThatNoneHasBegun) {
  LaunchersAtWork launchers(absl::Milliseconds(10));
  Node("0");
  launchers.Watch("a", folder_.path(), 2);
  const LaunchersAtWork::Found found = Await(launchers, 0);
  EXPECT_THAT(found.at_work, ElementsAre(false, false));
  EXPECT_FALSE(found.any_began);
}

}  // namespace
}  // namespace tutti::engine
