#include "base/process/waiting.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

TEST(Waiting, ALockIsHadByOneAndWaitedForByTheNext) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.path() / "lock";
  std::atomic<bool> cancelled = false;
  auto first = LockFile(file, cancelled);
  ASSERT_TRUE(first.ok()) << first.status();
  std::atomic<bool> had = false;
  std::thread next([&] { had = LockFile(file, cancelled).ok(); });
  first->reset();
  next.join();
  EXPECT_TRUE(had);
}

TEST(Waiting, ALockThatIsNotHadIsGivenUpWhenCancelled) {
  const TemporaryDirectory folder;
  std::atomic<bool> cancelled = false;
  const auto held = LockFile(folder.path() / "lock", cancelled);
  cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(LockFile(folder.path() / "lock", cancelled).status()));
}

TEST(Waiting, AProgramsEndIsGivenAndACancelledOneIsKilled) {
  std::atomic<bool> cancelled = false;
  EXPECT_EQ(RunToEnd({.arguments = {"/bin/sh", "-c", "exit 3"}}, cancelled)->code, 3);
  cancelled = true;
  const Deadline soon = Deadline::After(Patient(absl::Seconds(20)));
  EXPECT_TRUE(absl::IsCancelled(
      RunToEnd({.arguments = {"/bin/sh", "-c", "sleep 60 & wait"}}, cancelled).status()));
  EXPECT_FALSE(soon.Expired());
}

}  // namespace
}  // namespace tutti::base
