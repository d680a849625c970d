#include "base/process/held_folder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/machine.h"

namespace tutti::base {
namespace {

using ::testing::HasSubstr;

TEST(HoldFolder, RefusesAFolderWhoseHolderLives) {
  const TemporaryDirectory folder;
  auto held = HoldFolder(folder.path());
  ASSERT_TRUE(held.ok()) << held.status();
  const auto refused = HoldFolder(folder.path());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr(absl::StrCat("(process ", ::getpid(), " on ")));
  held->reset();
  EXPECT_TRUE(HoldFolder(folder.path()).ok());
}

// As a service that is started at once after the one before was killed while it forked.
TEST(HoldFolder, WaitsForWhatAKilledHolderHasForked) {
  const TemporaryDirectory folder;
  auto forked = HoldFolder(folder.path());
  ASSERT_TRUE(forked.ok()) << forked.status();
  const pid_t killed = ::fork();
  if (killed == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
  std::ofstream(folder.path() / "lock") << killed << " on " << HostName() << "\n";
  auto next = std::async(std::launch::async, [&] { return HoldFolder(folder.path()); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  forked->reset();
  const auto held = next.get();
  EXPECT_TRUE(held.ok()) << held.status();
}

}  // namespace
}  // namespace tutti::base
