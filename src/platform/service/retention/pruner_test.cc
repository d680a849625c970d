// Covers: caches.cc, images.cc, in_use.cc, old_jobs.cc.
#include "platform/service/retention/pruner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/test_patience.h"
#include "platform/container/kept_images.h"
#include "platform/service/cluster_for_tests.h"
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
    const auto removals = service().Prune({.dry_run = dry_run});
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

TEST_F(RetentionTest, NothingGoesByAClockThatWasSetAhead) {
  Prune();
  const fs::path snapshot = Snapshot('a', kADay);
  world_.clock().Set(world_.clock().Now() + 400 * kADay);
  const auto refused = service().Prune({});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("this machine's clock was set ahead"));
  EXPECT_TRUE(fs::exists(snapshot));
  EXPECT_THAT(Prune(/*dry_run=*/true), ElementsAre("snapshots sha256:aaaaa"));
  world_.clock().Advance(kADay);
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa")) << "it has gone on so for a day";
}

// As after a summer in which the machine was off.
TEST_F(RetentionTest, ItsUserCanSayThatTheClockIsRight) {
  Prune();
  const fs::path snapshot = Snapshot('a', kADay);
  world_.clock().Set(world_.clock().Now() + 400 * kADay);
  EXPECT_FALSE(service().Prune({}).ok());
  const auto removed = service().Prune({.clock_is_right = true});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->size(), 1u);
  EXPECT_TRUE(service().Prune({}).ok()) << "it is known from then on";
}

TEST_F(RetentionTest, EnvironmentsGoByThemselvesWhenAUserSaysHowLongTheyMayBeUnused) {
  Site("{environments: never, snapshots: {age: 1d}}");
  const fs::path snapshot = Snapshot('a', 31 * kADay);
  const fs::path old = Folder("environments", kOneKey, 8 * kADay),
                 young = Folder("environments", kOtherKey, 6 * kADay);
  const auto removed = service().Prune({.environments_unused_for = 7 * kADay});
  ASSERT_TRUE(removed.ok()) << removed.status();
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().what.name, kOneKey);
  EXPECT_EQ(removed->front().why, "unused for 8 days");
  EXPECT_TRUE(fs::exists(snapshot) && fs::exists(young));
  EXPECT_FALSE(fs::exists(old));
}

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

TEST_F(RetentionTest, TheNewestOfEachPackedProgramStays) {
  const auto note = [&](const std::string& name, char digit, absl::Duration ago) {
    const fs::path path = Make("snapshots/" + name + std::string(64, digit));
    EXPECT_TRUE(base::WriteFileAtomic(path, std::string(64, digit)).ok());
    Used(path, ago);
    return Snapshot(digit, 31 * kADay);
  };
  note("program-", 'a', 20 * kADay);
  const fs::path launcher = note("program-", 'b', 10 * kADay);
  const fs::path storage = note("program-tutti-storage-", 'c', 15 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa"));
  EXPECT_TRUE(fs::exists(launcher) && fs::exists(storage));
}

TEST_F(RetentionTest, ASiteSaysHowMuchOfWhatIsKept) {
  Site("{snapshots: {size: 0MB}, data: never}");
  Snapshot('a', 2 * kADay);
  Snapshot('b', absl::Minutes(1));  // its job may not have come yet
  Folder("data", kOneKey, 4000 * kADay);
  EXPECT_THAT(Prune(), ElementsAre("snapshots sha256:aaaaa"));
  Site("{snapshots: {size: 0}}");
  EXPECT_THAT(std::string(service().Prune({.dry_run = true}).status().message()),
              HasSubstr("site.yml:1"));
}

TEST_F(RetentionTest, WhatIsStillFetchedIsMeasuredAgainAndSharedFilesCountOnce) {
  Site("{data: {size: 0MB}}");
  const auto measure = [&](const char* key) {
    uint64_t bytes = 0;
    const auto removals = service().Prune({.dry_run = true}).value();
    for (const Removal& one : removals) bytes += one.what.name == key ? one.what.bytes : 0;
    return bytes;
  };
  const fs::path home = Home() / "data" / kOneKey, other = Home() / "data" / kOtherKey;
  const auto used = [&] { Used(home, kADay); };
  Make(home / "part/a");
  used();
  EXPECT_EQ(measure(kOneKey), 10u);
  Make(home / "part/b");
  used();
  EXPECT_EQ(measure(kOneKey), 20u);
  fs::rename(home / "part", home / "content");
  Make(home / "content/c");
  used();
  EXPECT_EQ(measure(kOneKey), 30u);
  ASSERT_TRUE(base::MakeDirectories(other / "content").ok());
  fs::create_hard_link(home / "content/a", other / "content/a");
  Used(other, kADay);
  EXPECT_EQ(measure(kOneKey), 25u);
  EXPECT_EQ(measure(kOtherKey), 5u);
  ASSERT_TRUE(base::RemoveTree(home).ok());
  EXPECT_EQ(measure(kOtherKey), 10u);
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

TEST_F(RetentionTest, DataThatAJobHasPinnedStay) {
  const fs::path data = Folder("data", kOneKey, 31 * kADay);
  Make(fs::path("data/pins") / kOneKey);
  const auto pin = base::Open(Home() / "data/pins" / kOneKey, O_RDWR);
  ASSERT_TRUE(pin.ok());
  ASSERT_EQ(::flock(pin->get(), LOCK_SH), 0);
  EXPECT_THAT(Prune(), IsEmpty());
  ASSERT_EQ(::flock(pin->get(), LOCK_UN), 0);
  EXPECT_EQ(Prune().size(), 1u);
  EXPECT_FALSE(fs::exists(data));
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

TEST_F(RetentionTest, AJobThatComesUnderTheNameOfOneWhoseResultsHaveGoneHasItsOwn) {
  Site("{results: {age: 1d}}");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  Used(Home() / "jobs/j", 100 * kADay);
  world_.clock().Advance(100 * kADay);
  ASSERT_THAT(Prune(), ElementsAre("results j"));
  ASSERT_TRUE(service().Delete("j").ok());
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  const auto next =
      world_.Submit(absl::StrCat("name: next\ntype: command\ncommand: echo ${{inputs.x}}\ninputs: "
                                 "{x: {type: uri_folder, path: ",
                                 OutputsOf("j").native(), "}}\n"));
  EXPECT_TRUE(next.ok()) << next.status();
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
  service().Run();  // whose start looks into the folder of jobs
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

// A cluster whose nodes share a folder with the service.
class ClusterRetentionTest : public ::testing::Test {
 protected:
  ClusterRetentionTest() { cluster_.shared_folder = Shared().native(); }

  fs::path Shared() const { return folder_.path() / "shared"; }
  void Used(const fs::path& path, absl::Duration ago) {
    const timespec at = absl::ToTimespec(world_.clock().Now() - ago);
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  }
  fs::path Folder(const std::string& kind, const std::string& key, absl::Duration ago) {
    const fs::path path = Shared() / kind / key;
    EXPECT_TRUE(base::MakeDirectories(path).ok());
    EXPECT_TRUE(base::WriteFileAtomic(path / "complete", "0123456789").ok());
    Used(path, ago);
    return path;
  }
  // As the launcher of `host` leaves one.
  fs::path Image(const fs::path& environments, const std::string& host, const std::string& name,
                 absl::Duration ago) {
    const fs::path file =
        environments / "images" / host / absl::StrCat(container::KeyOfImage(name), ".json");
    EXPECT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(
                    file, absl::StrCat("{\"name\": \"", name, "\", \"id\": \"1\", \"bytes\": 7}"))
                    .ok());
    Used(file, ago);
    return file;
  }
  // "kind name place" of each.
  std::vector<std::string> Prune(bool dry_run = false) {
    const auto removals = world_.service().Prune({.dry_run = dry_run});
    EXPECT_TRUE(removals.ok()) << removals.status();
    std::vector<std::string> lines;
    if (!removals.ok()) return lines;
    for (const Removal& one : *removals) {
      lines.push_back(absl::StrCat(Name(one.what.kind), " ", one.what.name, " ", one.what.place));
    }
    return lines;
  }
  void Site(const std::string& retention) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "site.yml",
                                      "computes: {hpc: {type: slurm, folder: /shared}}\n"
                                      "retention: " +
                                          retention + "\n")
                    .ok());
  }
  void SubmitTo(const std::string& compute, const std::string& more = "") {
    const auto job = world_.Submit(absl::StrCat("name: ", compute, "-job\ntype: command\n",
                                                "command: echo\ncompute: ", compute, "\n", more));
    ASSERT_TRUE(job.ok()) << job.status();
    world_.Step();
  }

  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  World world_{folder_.path(), {}, 2, &cluster_};
};

TEST_F(ClusterRetentionTest, WhatLaunchersKeepInItsFolderGoesByTheSameAges) {
  const fs::path data = Folder("data", kOneKey, 31 * kADay);
  const fs::path environment = Folder("environments", kOneKey, 91 * kADay);
  const fs::path young = Folder("data", kOtherKey, 29 * kADay);
  const fs::path users = Shared() / "snapshots" / SnapshotNamed('a');
  ASSERT_TRUE(base::MakeDirectories(users.parent_path()).ok());
  ASSERT_TRUE(base::WriteFileAtomic(users, "").ok());
  Used(users, 400 * kADay);
  const auto all = ElementsAre(absl::StrCat("data ", kOneKey, " hpc"),
                               absl::StrCat("environments ", kOneKey, " hpc"));
  EXPECT_THAT(Prune(/*dry_run=*/true), all);
  EXPECT_TRUE(fs::exists(data) && fs::exists(environment)) << "it was a dry run";
  EXPECT_THAT(Prune(), all);
  EXPECT_FALSE(fs::exists(data) || fs::exists(environment));
  EXPECT_TRUE(fs::exists(young) && fs::exists(users)) << "that is not of tutti";
  EXPECT_THAT(Prune(), IsEmpty());
}

TEST_F(ClusterRetentionTest, EachPlaceHasItsSizeForItself) {
  Site("{data: {size: 0MB}}");
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / "data" / kOtherKey).ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "data" / kOtherKey / "x", "x").ok());
  Used(folder_.path() / "data" / kOtherKey, 2 * kADay);
  Folder("data", kOneKey, 2 * kADay);
  EXPECT_THAT(Prune(), ElementsAre(absl::StrCat("data ", kOtherKey, " "),
                                   absl::StrCat("data ", kOneKey, " hpc")));
}

// The cluster may have begun it, and its launcher may have taken what the service does not know of.
TEST_F(ClusterRetentionTest, WhatAJobThatWaitsThereMayHaveTakenStays) {
  Site("{environments: {age: 1h}}");
  SubmitTo("hpc");
  Folder("environments", kOneKey, absl::ZeroDuration());
  Folder("environments", kOtherKey, absl::Hours(2));
  world_.clock().Advance(absl::Hours(5));
  EXPECT_THAT(Prune(), ElementsAre(absl::StrCat("environments ", kOtherKey, " hpc")));
}

TEST_F(ClusterRetentionTest, WhatIsBeingMadeOrTakenThereStays) {
  Folder("data", kOneKey, 31 * kADay);
  const auto lock =
      base::Open(Shared() / "data" / absl::StrCat(kOneKey, ".lock"), O_RDWR | O_CREAT);
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(::flock(lock->get(), LOCK_SH), 0);
  EXPECT_THAT(Prune(), IsEmpty());
}

TEST_F(ClusterRetentionTest, GoesOnThereWhereAKillHasCutItShort) {
  const fs::path half = Folder("environments", ".gone-x", kADay);
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(10), [&] { return !fs::exists(half); }));
}

TEST_F(ClusterRetentionTest, AFolderThatIsAwayIsLeftAlone) {
  Folder("data", kOneKey, 31 * kADay);
  cluster_.shared_folder.clear();
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_TRUE(fs::exists(Shared() / "data" / kOneKey));
}

TEST_F(ClusterRetentionTest, ImagesOfItsNodesAreMarkedForTheLaunchersThere) {
  const fs::path old = Image(Shared() / "environments", "n1", "a.example/b:1", 91 * kADay);
  const fs::path young = Image(Shared() / "environments", "n2", "a.example/b:1", 89 * kADay);
  const auto removals = world_.service().Prune({.dry_run = true});
  ASSERT_TRUE(removals.ok()) << removals.status();
  ASSERT_EQ(removals->size(), 1u);
  EXPECT_THAT(removals->front().why,
              HasSubstr("(retention.images.age: 90 days); the next job on that node removes it"));
  EXPECT_THAT(Prune(), ElementsAre("images a.example/b:1 hpc/n1"));
  EXPECT_TRUE(fs::exists(old.parent_path() / (".gone-" + old.filename().native())));
  EXPECT_TRUE(fs::exists(young) && !fs::exists(old));
  EXPECT_THAT(Prune(), IsEmpty());
}

// Stands for podman: it has image 1 under any name until that is removed.
constexpr char kPodmanWithOneImage[] = R"(#!/bin/sh
here=${0%/*}
[ "$1" != image ] || { [ ! -e "$here/removed" ] && echo 1 1 || { echo "Error: image not known" >&2; exit 125; }; }
[ "$1" != rmi ] || echo "$2" >>"$here/removed"
)";

TEST_F(ClusterRetentionTest, ImagesOfThisMachineGoUnlessAJobUsesOrAwaitsThem) {
  const std::string path = std::getenv("PATH");
  const fs::path bin = folder_.path() / "bin", environments = folder_.path() / "environments";
  ASSERT_TRUE(base::MakeDirectories(bin).ok());
  ASSERT_TRUE(base::WriteFileAtomic(bin / "podman", kPodmanWithOneImage, 0755).ok());
  ::setenv("PATH", absl::StrCat(bin.native(), ":", path).c_str(), 1);
  Site("{images: {age: 90d}}");
  SubmitTo("hpc", "environment: {image: 'a.example/awaited:1'}\n");
  Image(environments, "n1", "a.example/awaited:1", 100 * kADay);
  Image(environments, "n1", "a.example/b:1", 100 * kADay);
  const fs::path other = Image(environments, "n2", "a.example/b:1", 20 * kADay);
  EXPECT_THAT(Prune(), IsEmpty()) << "another virtual node has used it";
  Used(other, 95 * kADay);
  EXPECT_THAT(Prune(/*dry_run=*/true), ElementsAre("images a.example/b:1 "));
  EXPECT_THAT(Prune(), ElementsAre("images a.example/b:1 "));
  EXPECT_EQ(base::ReadFile(bin / "removed", 100).value(), "a.example/b:1\n");
  EXPECT_THAT(Prune(), IsEmpty());
  EXPECT_FALSE(fs::exists(other));
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace tutti::service
