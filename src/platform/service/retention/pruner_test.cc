// Covers: caches.cc, in_use.cc, old_jobs.cc.
#include "platform/service/retention/pruner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/test_patience.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using store::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kADay = absl::Hours(24);
constexpr char kOneKey[] = "0123456789abcdef01234567", kOtherKey[] = "89abcdef0123456701234567";

std::string SnapshotNamed(char digit) { return "sha256-" + std::string(64, digit); }

class RetentionTest : public ServiceTest {
 protected:
  void Site(const std::string& retention) {
    const absl::Status written =
        base::WriteFileAtomic(Home() / "site.yml", "retention: " + retention + "\n");
    ASSERT_TRUE(written.ok()) << written;
  }
  fs::path Home() const { return folder_.path(); }
  // A file of ten bytes.
  fs::path Make(const fs::path& name) {
    EXPECT_TRUE(base::MakeDirectories((Home() / name).parent_path()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(Home() / name, "0123456789").ok());
    return Home() / name;
  }
  void Used(const fs::path& path, absl::Duration ago) {
    const timespec at = absl::ToTimespec(world_.clock().Now() - ago);
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  }
  fs::path Snapshot(char digit, absl::Duration ago) {
    const fs::path path = Make("snapshots/" + SnapshotNamed(digit));
    Used(path, ago);
    return path;
  }
  fs::path Folder(const std::string& kind, const std::string& key, absl::Duration ago) {
    Make(fs::path(kind) / key / "complete");
    Used(Home() / kind / key, ago);
    return Home() / kind / key;
  }
  // "kind name why" of each.
  std::vector<std::string> Prune(bool dry_run = false) {
    const auto removals = service().Prune(dry_run);
    EXPECT_TRUE(removals.ok()) << removals.status();
    std::vector<std::string> lines;
    if (!removals.ok()) return lines;
    for (const Removal& one : *removals) {
      lines.push_back(absl::StrCat(Name(one.what.kind), " ", one.what.name.substr(0, 12)));
    }
    return lines;
  }
  std::vector<std::string> RemovedOf(const std::string& job) {
    std::vector<std::string> kinds;
    const auto removed = service().RemovedOf(job).value();
    for (const store::RemovedFiles& files : removed) kinds.push_back(files.kind);
    return kinds;
  }
  fs::path OutputsOf(const std::string& job) const { return Home() / "jobs" / job / "outputs"; }
};

TEST_F(RetentionTest, CachesGoWhenTheyAreLongUnusedAndAllElseStays) {
  const fs::path old = Snapshot('a', 31 * kADay), young = Snapshot('b', 29 * kADay);
  const fs::path data = Folder("data", kOneKey, 31 * kADay);
  const fs::path environment = Folder("environments", kOneKey, 91 * kADay);
  const fs::path uv = Make("environments/uv/bin/uv"),
                 half = Make("environments/" + std::string(kOtherKey) + "/x");
  Used(half.parent_path(), 400 * kADay);
  const std::vector<std::string> all = Prune(/*dry_run=*/true);
  EXPECT_THAT(
      all, ElementsAre("snapshots sha256:aaaaa", "data 0123456789ab", "environments 0123456789ab"));
  EXPECT_TRUE(fs::exists(old) && fs::exists(data) && fs::exists(environment)) << "it was a dry run";
  EXPECT_EQ(Prune(), all);
  EXPECT_FALSE(fs::exists(old) || fs::exists(data) || fs::exists(environment));
  EXPECT_TRUE(fs::exists(young) && fs::exists(uv) && fs::exists(half));
  EXPECT_THAT(Prune(), IsEmpty());
}

TEST_F(RetentionTest, WhoAsksForASnapshotUsesIt) {
  Site("{snapshots: {age: 1d}}");
  Snapshot('a', 31 * kADay);
  world_.clock().Advance(absl::Now() - world_.clock().Now());  // files are marked by the real clock
  ASSERT_TRUE(service().snapshots().Find("sha256:" + std::string(64, 'a')).ok());
  EXPECT_THAT(Prune(), IsEmpty());
}

TEST_F(RetentionTest, ASiteSaysHowMuchOfWhatIsKept) {
  Site("{snapshots: {size: 0MB}, data: never}");
  Snapshot('a', 2 * kADay);
  Snapshot('b', absl::Minutes(1));  // its job may not have come yet
  Folder("data", kOneKey, 4000 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa"));
  Site("{snapshots: {size: 0}}");
  EXPECT_THAT(std::string(service().Prune(true).status().message()), HasSubstr("site.yml:1"));
}

TEST_F(RetentionTest, TheCodeOfAJobThatHasNotEndedStays) {
  const fs::path code = Snapshot('a', absl::ZeroDuration());
  const auto job = service().Submit(
      {.text = kJobFile, .base_directory = "/", .snapshot = "sha256:" + std::string(64, 'a')});
  ASSERT_TRUE(job.ok()) << job.status();
  Used(code, 31 * kADay);
  EXPECT_THAT(Prune(), IsEmpty());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  Used(code, 31 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa"));
}

TEST_F(RetentionTest, WhatARunningJobMayHaveTakenStays) {
  Site("{environments: {age: 1h}, data: {age: 1h}}");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  Folder("environments", kOneKey, absl::ZeroDuration());
  Folder("environments", kOtherKey, 2 * absl::Hours(1));  // since it came nobody has taken it
  world_.clock().Advance(absl::Hours(5));
  EXPECT_THAT(Prune(), ElementsAre("environments 89abcdef0123"));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(Prune(), ElementsAre("environments 0123456789ab"));
}

// As of a version of tutti that marked nothing.
TEST_F(RetentionTest, WhatAJobOfBeforeRetentionMayHaveTakenStays) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  Folder("data", kOneKey, 400 * kADay);
  const fs::path old = Snapshot('a', 400 * kADay);
  Used(Make("retention_since"), -absl::Hours(1));
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa"));
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_THAT(Prune(), ElementsAre("data 0123456789ab"));
}

TEST_F(RetentionTest, WhatIsBeingMadeOrTakenStays) {
  Folder("data", kOneKey, 31 * kADay);
  const auto lock = base::Open(Home() / "data" / absl::StrCat(kOneKey, ".lock"), O_RDWR | O_CREAT);
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(::flock(lock->get(), LOCK_SH), 0);
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_EQ(Prune(/*dry_run=*/true).size(), 1u);
}

TEST_F(RetentionTest, ResultsAndLogsStayUnlessTheSiteSaysOtherwise) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  world_.clock().Advance(4000 * kADay);
  EXPECT_THAT(Prune(), IsEmpty());
  Site("{results: {age: 5000d}, logs: {age: 30d}}");
  EXPECT_THAT(Prune(), ElementsAre("logs j"));
  EXPECT_THAT(RemovedOf("j"), ElementsAre("logs"));
  EXPECT_FALSE(fs::exists(Home() / "jobs/j/logs"));
  EXPECT_TRUE(fs::exists(OutputsOf("j") / "from-n1"));
  world_.clock().Advance(1001 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("results j"));
  EXPECT_THAT(RemovedOf("j"), ElementsAre("logs", "results"));
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_TRUE(service().GetJob("j").ok()) << "the job itself stays";
  EXPECT_TRUE(service().Delete("j").ok());
}

TEST_F(RetentionTest, OfTooMuchTheJobsThatEndedFirstGo) {
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(
        world_.Submit(absl::StrCat("name: ", name, "\ntype: command\ncommand: echo\n")).ok());
    ASSERT_TRUE(world_.StepUntilOver(name));
    Make(fs::path("jobs") / name / "outputs/more");
    fs::resize_file(OutputsOf(name) / "more", 900'000);
    world_.clock().Advance(kADay);
    Used(Home() / "jobs" / name, kADay);
  }
  Site("{results: {size: 1MB}}");
  EXPECT_THAT(Prune(), ElementsAre("results one"));
  EXPECT_TRUE(fs::exists(OutputsOf("two")));
}

TEST_F(RetentionTest, TheInputsOfAJobThatWaitsStay) {
  Site("{results: {age: 1d}}");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const auto taken =
      world_.Submit(absl::StrCat("name: next\ntype: command\ncommand: echo ${{inputs.x}}\ninputs: "
                                 "{x: {type: uri_folder, path: ",
                                 OutputsOf("j").native(), "}}\n"));
  ASSERT_TRUE(taken.ok()) << taken.status();
  world_.clock().Advance(100 * kADay);
  EXPECT_THAT(Prune(), IsEmpty());
  ASSERT_TRUE(world_.StepUntilOver("next"));
  Used(Home() / "jobs/j", 100 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("results j"));
}

// As a kill between its steps leaves them.
TEST_F(RetentionTest, GoesOnWhereAKillHasCutItShort) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().files().Retire("j", "outputs").ok());  // and the store does not know
  Make("data/.gone-x/file");
  Make("jobs/.gone-x/file");
  world_.Open();
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_THAT(RemovedOf("j"), ElementsAre("results"));
  const auto is_clean = [&] {
    return !fs::exists(Home() / "data/.gone-x") &&
           std::distance(fs::directory_iterator(Home() / "jobs"), fs::directory_iterator()) == 1;
  };
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(10), is_clean));
}

TEST_F(RetentionTest, ADeletedJobsRestIsRemovedWithoutANote) {
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  ASSERT_TRUE(service().files().Retire("j", "outputs").ok());
  ASSERT_TRUE(service().Delete("j").ok());
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_THAT(service().files().Retired(), IsEmpty());
}

}  // namespace
}  // namespace tutti::service
