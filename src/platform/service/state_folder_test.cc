// Covers: results/snapshots.cc.
#include "platform/service/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "platform/service/results/snapshots.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int ModeOf(const std::filesystem::path& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(StateFolder, KeepsItsTokensAndShowsThemToNobodyElse) {
  base::TemporaryDirectory parent;
  std::string user, launcher;
  {
    const auto folder = StateFolder::Open(parent.path() / "state");
    ASSERT_TRUE(folder.ok()) << folder.status();
    user = folder->user_token();
    launcher = folder->launcher_key();
    ASSERT_TRUE(folder->Announce("https://127.0.0.1:1", "PEM").ok());
    ASSERT_TRUE(folder->AnnounceToMonitors().ok());
    EXPECT_EQ(ModeOf(folder->directory()), 0700);
    for (const char* name :
         {"token", "launcher_key", "service.json", "launcher.json", "metrics_token"}) {
      EXPECT_EQ(ModeOf(folder->directory() / name), 0600) << name;
    }
    const auto json = nlohmann::json::parse(base::ReadFile(folder->launcher_file()).value());
    EXPECT_EQ(json.at("address"), "https://127.0.0.1:1");
    EXPECT_FALSE(json.contains("token"));
    EXPECT_EQ(json.at("certificate"), "PEM");
    ASSERT_TRUE(folder->Withdraw().ok());
    EXPECT_FALSE(std::filesystem::exists(folder->service_file()));
  }
  EXPECT_NE(user, launcher);
  EXPECT_EQ(user.size(), 48u);
  const auto again = StateFolder::Open(parent.path() / "state");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->user_token(), user);
}

TEST(StateFolder, TellsLaunchersOfAnEarlierVersionTheirTokenUntilNoneIsLeft) {
  base::TemporaryDirectory parent;
  const auto file = parent.path() / "launcher_token";
  ASSERT_TRUE(base::WriteFileAtomic(file, "of-before-0123456789\n", 0600).ok());
  auto folder = StateFolder::Open(parent.path());
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->former_launcher_token(), "of-before-0123456789");
  const auto told = [&] {
    EXPECT_TRUE(folder->Announce("https://127.0.0.1:1", "PEM").ok());
    return nlohmann::json::parse(base::ReadFile(folder->launcher_file()).value())
        .value("token", "");
  };
  ASSERT_TRUE(folder->FindFormerAllocations({"before.1", "before.2"}).ok());
  EXPECT_THAT(folder->former_allocations(), ElementsAre("before.1", "before.2"));
  EXPECT_EQ(told(), "of-before-0123456789");
  const auto open_again = [&] {
    folder = absl::UnknownError("");  // who holds it ends
    folder = StateFolder::Open(parent.path());
    ASSERT_TRUE(folder.ok()) << folder.status();
  };
  open_again();
  ASSERT_TRUE(folder->FindFormerAllocations({"after.1", "before.2"}).ok());
  EXPECT_THAT(folder->former_allocations(), ElementsAre("before.2"));
  open_again();
  ASSERT_TRUE(folder->FindFormerAllocations({"after.1"}).ok());
  EXPECT_THAT(folder->former_allocations(), IsEmpty());
  EXPECT_EQ(told(), "");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(StateFolder, RefusesANameThatPlansCannotTell) {
  base::TemporaryDirectory parent;
  const auto folder = StateFolder::Open(parent.path() / "x\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(folder.status())) << folder.status();
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("/x?: the name"));
  EXPECT_THAT(std::string(folder.status().message()), HasSubstr("TUTTI_HOME"));
  EXPECT_FALSE(std::filesystem::exists(parent.path() / "x\xff"));
  EXPECT_TRUE(StateFolder::Open(parent.path() / "caf\xc3\xa9").ok());
}

TEST(StateFolder, IsHeldByOneServiceAtATime) {
  base::TemporaryDirectory parent;
  const auto first = StateFolder::Open(parent.path());
  ASSERT_TRUE(first.ok());
  const auto second = StateFolder::Open(parent.path());
  ASSERT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(::getpid())));
}

TEST(Snapshots, KeepWhatHasTheHashOfItsName) {
  base::TemporaryDirectory folder;
  const Snapshots snapshots(folder.path() / "snapshots");
  const std::string name = "sha256:" + base::Hex(base::Sha256Of("code"));
  EXPECT_TRUE(absl::IsNotFound(snapshots.Find(name).status()));
  {
    auto upload = snapshots.Begin(name);
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE(upload->Write("co").ok());
    ASSERT_TRUE(upload->Write("dX").ok());
    EXPECT_TRUE(absl::IsInvalidArgument(upload->Commit()));
  }
  EXPECT_TRUE(absl::IsNotFound(snapshots.Find(name).status()));
  auto upload = snapshots.Begin(name);
  ASSERT_TRUE(upload->Write("code").ok());
  ASSERT_TRUE(upload->Commit().ok());
  EXPECT_EQ(base::ReadFile(*snapshots.Find(name)).value(), "code");
}

TEST(Snapshots, RefuseOtherNames) {
  base::TemporaryDirectory folder;
  const Snapshots snapshots(folder.path());
  for (const std::string& name :
       {std::string(""), std::string("sha256:"), std::string("sha256:../x"),
        "sha256:" + std::string(64, 'A'), "md5:" + std::string(64, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(snapshots.Find(name).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(snapshots.Begin(name).status())) << name;
  }
}

}  // namespace
}  // namespace tutti::service
