// Covers: mpi_agreement.cc, platform/launch/limits/mpi_singleton_limit.cc.
#include "platform/launch/mpi/singleton_watch.h"

#include "platform/launch/launcher_fixture.h"
#include "platform/launch/mpi/open_mpi.h"

namespace tutti::launch {
namespace {

using ::testing::StartsWith;

TEST(SingletonWatch, KnowsOpenMpisLibrary) {
  EXPECT_EQ(
      OpenMpiIn("7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n"
                "7f02-7f03 r-xp 00000000 08:01 8                  /opt/ompi/libmpi.so.40.30.4\n"),
      "/opt/ompi/libmpi.so.40.30.4");
  EXPECT_EQ(OpenMpiIn("7f02-7f03 r-xp 00000000 08:01 8 /opt/mpich/libmpi.so.12\n"), "");
  EXPECT_EQ(OpenMpiIn(""), "");
}

TEST(SingletonWatch, TakesAnEnvironmentThatIsNotTheJobsForNoVerdict) {
  using namespace std::string_literals;
  EXPECT_FALSE(LacksMpirun(""));
  EXPECT_FALSE(LacksMpirun("\0\0\0"s));                  // wiped, for a title
  EXPECT_FALSE(LacksMpirun("worker: rate=0.1\0\0\0"s));  // that title
  EXPECT_FALSE(LacksMpirun("TUTTI_JOB_ID=j\0PMIX_NAMESPACE=prterun-1\0"s));
  EXPECT_TRUE(LacksMpirun("TUTTI_JOB_ID=j\0NOT_PMIX_NAMESPACE=1\0"s));
}

TEST(SingletonWatch, LooksAgainBeforeItNamesAProcess) {
  const base::TemporaryDirectory folder;
  const std::string library = folder.path() / "libmpi.so.40-test";
  std::filesystem::copy_file("/bin/sleep", library);
  base::ChildOptions options;
  options.arguments = {library, "600"};
  options.environment = {{"PATH", "/bin"}, {"TUTTI_JOB_ID", "j"}};
  options.die_with_parent = true;
  base::ChildProcess child = *base::ChildProcess::Start(options);  // it has the library by then
  SingletonWatch watch(base::SteadyNow());
  EXPECT_FALSE(watch.Look({}).has_value());
  const std::optional<MpiSingleton> found = watch.Look({});
  EXPECT_TRUE(child.SignalGroup(SIGKILL).ok());
  EXPECT_TRUE(child.Wait(base::Deadline::After(base::Patient(absl::Seconds(20)))).ok());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->library, library);
}

TEST(SingletonWatch, LooksOftenAtFirstAndNeverForMoreThanATwentiethOfTheTime) {
  const absl::Duration quick = absl::Milliseconds(1), slow = absl::Milliseconds(400);
  EXPECT_EQ(SingletonWatch::IntervalAfter(absl::Seconds(1), quick), absl::Milliseconds(100));
  EXPECT_EQ(SingletonWatch::IntervalAfter(absl::Seconds(1), slow), absl::Seconds(8));
  EXPECT_EQ(SingletonWatch::IntervalAfter(absl::Minutes(1), quick), absl::Seconds(5));
  EXPECT_EQ(SingletonWatch::IntervalAfter(absl::Minutes(1), slow), absl::Seconds(8));
}

// Open MPI's library is a program that sleeps here: it is mapped by that name too.
class LauncherWithoutMpirun : public LauncherFixture {
 protected:
  spec::LaunchPlan MpiPlan(std::string command) const {
    spec::LaunchPlan plan = Plan("cp /bin/sleep libmpi.so.40-$RANK; " + command, 2);
    plan.distribution.type = "mpi";
    plan.environment_variables[kMpiVariable] = "pmi";
    return plan;
  }
};

TEST_F(LauncherWithoutMpirun, EndsRanksThatWouldBeWorldsOfTheirOwn) {
  Run(MpiPlan("[ $RANK = 0 ] || exec ./libmpi.so.40-1 600; exec sleep 600"));
  const nlohmann::json finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["rank"], 1);
  EXPECT_THAT(finished["reason"].get<std::string>(), StartsWith("has loaded Open MPI (/"));
}

// As those of a container, which are children of a monitor that has left podman.
TEST_F(LauncherWithoutMpirun, LooksAtProcessesThatHaveLeftTheirRank) {
  Run(MpiPlan("[ $RANK = 0 ] || (setsid ./libmpi.so.40-1 600 &); exec sleep 600"));
  const nlohmann::json finished = service.Events("finished").at(0);
  EXPECT_EQ(finished["rank"], 1);
  EXPECT_THAT(finished["reason"].get<std::string>(), StartsWith("has loaded Open MPI (/"));
}

TEST_F(LauncherWithoutMpirun, LeavesAloneWhatAnMpirunOfTheJobHasStarted) {
  Run(MpiPlan("PMIX_NAMESPACE=prterun-1 ./libmpi.so.40-$RANK 0.5"));
  EXPECT_EQ(service.Events("finished").at(0)["ok"], true);
}

}  // namespace
}  // namespace tutti::launch
