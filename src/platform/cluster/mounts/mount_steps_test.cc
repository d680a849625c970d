// Covers: mount_check.cc.
#include "platform/cluster/mounts/mount_steps.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"
#include "platform/cluster/check.h"
#include "platform/cluster/mounts/mount_check.h"
#include "platform/cluster/plan.h"

namespace tutti::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const NfsMount kPhotos = {"10.0.0.5", 2049, "/photos", "/mnt/photos"};
const NfsMount kFilms = {"10.0.0.6", 2049, "/films", "/mnt/photos"};  // at the same path

HostFacts Node() {
  HostFacts host;
  host.host = host.name = "a";
  host.address = "10.0.0.1";
  host.has_apt = host.nfs_client = true;
  host.memory_mib = 1000;
  return host;
}

HostFacts NodeWith(const NfsMount& mount) {
  HostFacts host = Node();
  host.mount_lines = {FstabLine(mount)};
  host.mounted = {{mount.path, SourceOf(mount)}};
  return host;
}

Description OneNode() {
  Description wanted;
  wanted.controller = "a";
  wanted.nodes = {"a"};
  wanted.munge_key = "secret\n";
  wanted.mounts = {kPhotos};
  return wanted;
}

std::vector<std::string> StepTexts(const std::vector<NfsMount>& mounts, const HostFacts& host) {
  std::vector<std::string> told;
  for (const MountStep& step : MountSteps(mounts, host)) told.push_back(step.what);
  return told;
}

TEST(MountSteps, AreOfWhatLacksAlone) {
  EXPECT_THAT(StepTexts({kPhotos}, Node()), ElementsAre("mount 10.0.0.5:/photos at /mnt/photos"));
  EXPECT_THAT(StepTexts({kPhotos}, NodeWith(kPhotos)), IsEmpty());
  EXPECT_THAT(StepTexts({}, Node()), IsEmpty());
  HostFacts by_hand = Node();
  by_hand.mounted = {{kPhotos.path, SourceOf(kPhotos)}};
  EXPECT_THAT(StepTexts({kPhotos}, by_hand), IsEmpty()) << "whoever administers the node did it";
  HostFacts booted = NodeWith(kPhotos);
  booted.mounted.clear();
  const auto steps = MountSteps({kPhotos}, booted);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_THAT(steps[0].script, Not(HasSubstr("fstab"))) << "its line stands";
}

TEST(MountSteps, TakeAwayWhatTuttiMountedAndIsWantedNoMore) {
  EXPECT_THAT(StepTexts({}, NodeWith(kPhotos)), ElementsAre("unmount /mnt/photos"));
  EXPECT_THAT(StepTexts({kFilms}, NodeWith(kPhotos)),
              ElementsAre("unmount /mnt/photos", "mount 10.0.0.6:/films at /mnt/photos"));
  EXPECT_THAT(UnmountAllText(NodeWith(kPhotos)), HasSubstr("umount"));
  EXPECT_EQ(UnmountAllText(Node()), "");
}

TEST(MountSteps, RefuseANodeWithoutAnNfsClientOrWithAnotherMountThere) {
  HostFacts host = Node();
  EXPECT_THAT(MountProblems({kPhotos}, host), IsEmpty());
  host.nfs_client = false;
  EXPECT_THAT(MountProblems({kPhotos}, host),
              ElementsAre(AllOf(HasSubstr("a has no NFS client"), HasSubstr("datastore"))));
  EXPECT_THAT(MountProblems({}, host), IsEmpty());
  host = Node();
  host.mounted = {{"/mnt/photos", "/dev/sdb1"}};
  EXPECT_THAT(MountProblems({kPhotos}, host),
              ElementsAre(HasSubstr("a has /dev/sdb1 mounted at /mnt/photos")));
  EXPECT_THAT(MountProblems({kFilms}, NodeWith(kPhotos)), IsEmpty());
}

TEST(MountSteps, StandInAPlanBetweenThePackageAndSlurmdOfNodesAlone) {
  Description wanted = OneNode();
  HostFacts node = Node(), controller = Node();
  controller.host = controller.name = wanted.controller = "c";
  controller.address = "10.0.0.3";
  controller.nfs_client = false;
  const auto plan = MakePlan(wanted, {controller, node});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> of_node;
  for (const Step& step : plan->steps) {
    if (step.host == "a") of_node.push_back(step.what);
    if (step.host != "c") continue;
    EXPECT_THAT(step.what, AllOf(Not(HasSubstr("nfs-common")), Not(HasSubstr("photos"))));
  }
  EXPECT_THAT(of_node,
              ElementsAre("install munge, slurm-client, slurmd, nfs-common",
                          "give it the cluster's munge key",
                          "mount 10.0.0.5:/photos at /mnt/photos", "write slurmd; start slurmd"));
  node.nfs_client = false;
  EXPECT_THAT(MakePlan(wanted, {controller, node}).status().message(),
              HasSubstr("a has no NFS client"));
}

TEST(MountSteps, OfAClustersAutoscaleAreALineForTheImage) {
  Description wanted = OneNode();
  wanted.autoscale.emplace().nodes = {"b"};
  const auto plan = MakePlan(wanted, {Node()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->notes, testing::Contains(HasSubstr(FstabLine(kPhotos))));
}

TEST(MountSteps, AreKeptWithTheCluster) {
  const base::TemporaryDirectory home;
  ASSERT_TRUE(WriteDescription(home.path(), OneNode()).ok());
  const auto read = ReadDescription(home.path(), "tutti");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->mounts.size(), 1);
  EXPECT_EQ(FstabLine(read->mounts[0]), FstabLine(kPhotos));
}

TEST(HostFactsOfMounts, AreReadAndCheckedBeforeTheyStandInAScript) {
  const std::string begin = "name=a\naddress=1.2.3.4\ncpus=1\nmemory_mib=9\n";
  const auto facts =
      ReadFacts("a", absl::StrCat(begin, "nfs_client=yes\nmount_line=", FstabLine(kPhotos),
                                  "\nmounted=/mnt/photos tmpfs\n"
                                  "mounted=/mnt/photos 10.0.0.5:/photos\nend=yes\n"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->nfs_client);
  EXPECT_THAT(StepTexts({kPhotos}, *facts), IsEmpty()) << "the last mount of a path is on top";
  EXPECT_FALSE(
      ReadFacts("a", absl::StrCat(begin, "mount_line=a:/b /mnt nfs4 x-tutti,';x;' 0 0\nend=yes\n"))
          .ok());
}

// Runs the check of kPhotos with a `stat` that is this script, a hundredth of the time, and this
// table of what is mounted.
MountAnswer Checked(const std::string& table, const std::string& stat) {
  const base::TemporaryDirectory folder;
  const auto put = [&](const char* name, const std::string& text) {
    const auto status = base::WriteFileAtomic(folder.path() / name, text, 0755);
    EXPECT_TRUE(status.ok()) << status;
  };
  put("table", table);
  put("stat", absl::StrCat("#!/bin/sh\n", stat));
  put("timeout",
      "#!/bin/sh\nfor word; do shift; case $word in [0-9]*) word=0.$word ;; esac\n"
      "set -- \"$@\" \"$word\"; done\nexec /usr/bin/timeout \"$@\"\n");
  base::ChildOptions options;
  options.arguments = {"/bin/sh", "-s"};
  options.environment = {{"PATH", folder.path().native() + ":/usr/bin:/bin"}};
  const auto run =
      base::RunCommand(options, CheckMountsText({kPhotos}, (folder.path() / "table").native()),
                       base::Deadline::After(base::Patient(absl::Seconds(30))));
  EXPECT_TRUE(run.ok()) << run.status();
  std::vector<MountAnswer> answers;
  if (run.ok()) {
    EXPECT_THAT(run->out, testing::StartsWith("mount="));
    ReadMountAnswer(run->out.substr(6, run->out.find('\n') - 6), answers);
  }
  EXPECT_EQ(answers.size(), 1);
  return answers.empty() ? MountAnswer{} : answers[0];
}

TEST(MountCheck, TellsOfAMountThatAnswersAndOfOneThatDoesNot) {
  const std::string table = "proc /proc proc rw 0 0\n10.0.0.5:/photos /mnt/photos nfs4 rw 0 0\n";
  const MountAnswer well = Checked(table, "[ \"$2\" = /mnt/photos ]\n");
  EXPECT_EQ(DetailOf(well), "/mnt/photos answers");
  EXPECT_EQ(RemedyOf(well), "");
  const MountAnswer failing = Checked(table, "exit 1\n");
  EXPECT_EQ(failing.state, MountAnswer::State::kSilent);
  const MountAnswer silent = Checked(table, "exec sleep 20\n");
  EXPECT_EQ(DetailOf(silent), "/mnt/photos: 10.0.0.5:/photos does not answer within 10 s");
  EXPECT_THAT(RemedyOf(silent), HasSubstr("tutti file-server show"));
}

TEST(MountCheck, TellsOfOneThatIsAnotherOrNotThere) {
  const MountAnswer other = Checked("/dev/sdb1 /mnt/photos ext4 rw 0 0\n", "exit 0\n");
  EXPECT_EQ(DetailOf(other), "/mnt/photos has /dev/sdb1 mounted");
  const MountAnswer gone = Checked("", "exit 0\n");
  EXPECT_THAT(DetailOf(gone), HasSubstr("/mnt/photos is not mounted"));
  EXPECT_NE(RemedyOf(gone), "");
}

TEST(MountCheck, IsAFindingOfItsOwnWhereTheClusterHasMounts) {
  const auto report = ReadReport("a",
                                 "mount=answers /mnt/a nas:/a\nmount=no_client /mnt/b nas:/b\n"
                                 "mount=what\nend=yes\n");
  ASSERT_TRUE(report.ok()) << report.status();
  const Finding found = Judge({*report}).back();
  EXPECT_EQ(found.name, "mounts");
  EXPECT_EQ(found.outcome, Finding::Outcome::kFailed);
  EXPECT_EQ(found.detail, "/mnt/a answers; /mnt/b is not mounted: this kernel has no NFS client");
  EXPECT_THAT(found.remedy, HasSubstr("nfs4"));
}

}  // namespace
}  // namespace tutti::cluster
