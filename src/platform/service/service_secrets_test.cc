// Secrets: kept sealed, given to the launchers of jobs that name them, and missing.
// Covers: secrets/secrets.cc, secrets/secrets.h, admission/secret_check.cc,
// secrets/image_logins.cc, flow/child_insertion.cc.
#include <gmock/gmock.h>

#include "platform/service/cluster_for_tests.h"
#include "platform/service/secrets/image_logins.h"
#include "platform/service/secrets/key_ring.h"
#include "platform/service/world_for_tests.h"
#include "spec/types/secret_limits.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kValue[] = "hunter22-of-the-hub";
const std::string kGiven =
    "resources:\n  instance_count: 2\n  properties: {tutti: {secrets: {TOKEN: hub, KEY: {secret: "
    "deploy, file: true}}}}\n";
const std::string kWithSecrets = absl::StrCat("type: command\nname: s\ncommand: echo hi\n", kGiven,
                                              "distribution: {type: mpi}\n");

class SecretsTest : public ServiceTest {
 protected:
  void SetBoth() {
    ASSERT_TRUE(service().SetSecret("hub", kValue).ok());
    ASSERT_TRUE(service().SetSecret("deploy", "line one\nline two\n").ok());
  }
  // The job s has its nodes.
  bool IsPlaced() {
    return world_.StepUntil([&] { return service().SecretsForLauncher("s.1", 0).ok(); });
  }
  std::filesystem::path key() const { return folder_.path() / "secrets.key"; }
  // Looks at all files below the service's folder.
  bool IsAnywhere(const std::string& value) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (!entry.is_regular_file()) continue;
      const auto content = base::ReadFile(entry.path());
      if (content.ok() && content->find(value) != std::string::npos) return true;
    }
    return false;
  }
  std::string WhyRefused(const std::string& text) {
    return std::string(world_.Submit(text).status().message());
  }
};

TEST_F(SecretsTest, AreListedWithoutValuesAndLieNowhereInTheClear) {
  EXPECT_THAT(*service().ListSecrets(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(key())) << "it is made at the first use";
  SetBoth();
  const auto list = *service().ListSecrets();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "deploy");
  EXPECT_TRUE(list[1].readable);
  EXPECT_THAT(list[1].waiting_jobs, IsEmpty());
  EXPECT_FALSE(IsAnywhere(kValue));
  EXPECT_TRUE(IsAnywhere("deploy")) << "the search finds what is there";
}

TEST_F(SecretsTest, ANewValueIsSetLaterThanItsNameWasMade) {
  SetBoth();
  world_.Step();  // which takes time
  ASSERT_TRUE(service().SetSecret("hub", "another-value").ok());
  const auto list = *service().ListSecrets();
  EXPECT_LT(list[1].created, list[1].set);
  EXPECT_EQ(list[0].created, list[0].set);
}

TEST_F(SecretsTest, NamesAndSizesAreChecked) {
  for (const char* name : {"", "../a", "a b", ".a"}) {
    EXPECT_THAT(std::string(service().SetSecret(name, kValue).message()), HasSubstr("name is of"));
    EXPECT_TRUE(absl::IsInvalidArgument(service().DeleteSecret(name).status()));
  }
  EXPECT_THAT(std::string(service().SetSecret("a", "abc\n").message()),
              HasSubstr("at least 4 bytes"));
  EXPECT_TRUE(service().SetSecret("a", std::string(spec::kLargestSecret, 'x')).ok());
  EXPECT_THAT(
      std::string(service().SetSecret("a", std::string(spec::kLargestSecret + 1, 'x')).message()),
      HasSubstr("at most 64 KiB"));
  EXPECT_TRUE(absl::IsNotFound(service().DeleteSecret("b").status()));
}

TEST_F(SecretsTest, ANewKeyIsMadeForASecretThatIsSetAnewIfNothingElseIsSealed) {
  ASSERT_TRUE(service().SetSecret("hub", kValue).ok());
  std::filesystem::remove(key());
  EXPECT_TRUE(service().SetSecret("hub", kValue).ok());
  EXPECT_THAT(service().Problems(), IsEmpty());
}

TEST_F(SecretsTest, OneJobIsNotGivenMoreThanItsProcessesCanHold) {
  for (const char* name : {"deploy", "hub"}) {
    ASSERT_TRUE(service().SetSecret(name, std::string(spec::kLargestSecret, 'x')).ok());
  }
  EXPECT_EQ(WhyRefused(kWithSecrets), "");
  ASSERT_TRUE(service().SetSecret("third", "abcd").ok());
  EXPECT_THAT(WhyRefused(absl::StrCat("command: echo hi\nresources:\n  properties:\n    tutti:\n",
                                      "      secrets: {A: hub, B: deploy, C: third}\n")),
              HasSubstr("the secrets of a job have at most 128 KiB together, and those that it "
                        "names have 131076 bytes"));
}

TEST_F(SecretsTest, AreGivenToTheLaunchersOfAJobThatNamesThem) {
  SetBoth();
  ASSERT_TRUE(service().SetSecret("other", "not for this job").ok());
  ASSERT_TRUE(world_.Submit(kWithSecrets).ok());
  ASSERT_TRUE(IsPlaced());
  const auto values = service().SecretsForLauncher("s.1", 1);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(*values, ElementsAre(Pair("deploy", "line one\nline two\n"), Pair("hub", kValue)));
  EXPECT_TRUE(absl::IsInvalidArgument(service().SecretsForLauncher("s.1", 2).status()));
  EXPECT_TRUE(absl::IsAborted(service().SecretsForLauncher("t.1", 0).status()));
  world_.Open();  // the next service
  EXPECT_EQ(world_.service().SecretsForLauncher("s.1", 0).value().at("hub"), kValue);
  const auto text = base::ReadFile(world_.engine().root() / "s.1" / "plan-0");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("\"TOKEN\""));
  EXPECT_FALSE(IsAnywhere(kValue));
  ASSERT_TRUE(world_.StepUntilOver("s"));
  EXPECT_EQ(world_.State("s"), JobState::kCompleted);
  EXPECT_TRUE(absl::IsAborted(world_.service().SecretsForLauncher("s.1", 0).status()));
}

TEST_F(SecretsTest, AJobThatNamesOneThatIsNotThereIsRefusedWithWhatToDo) {
  ASSERT_TRUE(service().SetSecret("hub", kValue).ok());
  EXPECT_EQ(WhyRefused(kWithSecrets),
            "job.yml:6: there is no secret \"deploy\": tutti secret set deploy");
  ASSERT_TRUE(service().SetSecret("deploy", std::string("with a \0 byte", 13)).ok());
  EXPECT_EQ(WhyRefused(kWithSecrets), "") << "a file may have any byte";
  ASSERT_TRUE(service().SetSecret("hub", std::string("with a \0 byte", 13)).ok());
  EXPECT_THAT(WhyRefused(absl::StrCat("command: echo hi\n", kGiven)),
              HasSubstr("secret \"hub\" has a zero byte, which no variable can hold"));
  ASSERT_TRUE(service().SetSecret("hub", "latin-1 \xe9t\xe9").ok());
  EXPECT_THAT(WhyRefused(absl::StrCat("command: echo hi\n", kGiven)),
              HasSubstr("secret \"hub\" is not UTF-8, which no variable can hold"));
}

TEST_F(SecretsTest, DeletingOneFailsTheJobsThatWaitForItBeforeTheyTakeANode) {
  SetBoth();
  ASSERT_TRUE(world_.Submit().ok());  // takes both nodes
  ASSERT_TRUE(world_.Submit(kWithSecrets).ok());
  EXPECT_THAT((*service().ListSecrets())[1].waiting_jobs, ElementsAre("s"));
  const auto failed = service().DeleteSecret("hub");
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_THAT(*failed, ElementsAre("s"));
  EXPECT_EQ(world_.State("s"), JobState::kFailed);
  EXPECT_EQ(world_.Reason("s"), "secret \"hub\", which it names, was deleted before it began");
  EXPECT_EQ(world_.History("s"), "Queued Failed");
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), JobState::kCompleted);
  EXPECT_THAT(world_.engine().Starts(), ElementsAre("j.1 0", "j.1 1"));
}

TEST_F(SecretsTest, AStepWhoseSecretIsGoneFailsWithoutANode) {
  SetBoth();
  ASSERT_TRUE(world_
                  .Submit("type: pipeline\nname: p\njobs:\n"
                          "  a: {command: x, outputs: {o: {}}}\n"
                          "  b:\n    command: y\n    inputs: {i: '${{parent.jobs.a.outputs.o}}'}\n"
                          "    resources: {properties: {tutti: {secrets: {T: hub}}}}\n")
                  .ok());
  ASSERT_TRUE(world_.StepUntil([&] { return service().GetJob("p.a").ok(); }));
  EXPECT_THAT(*service().DeleteSecret("hub"), IsEmpty()) << "b has not been made";
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_EQ(world_.State("p"), JobState::kFailed);
  EXPECT_EQ(world_.History("p.b"), "Queued Failed");
  EXPECT_EQ(world_.Reason("p.b"),
            "secret \"hub\", which it names, is not there: tutti secret set hub");
}

TEST_F(SecretsTest, WithAnotherKeyTheServiceServesTheRestAndSaysWhatItCannotRead) {
  SetBoth();
  EXPECT_THAT(service().Problems(), IsEmpty());
  const std::string former = *base::ReadFile(key());
  std::filesystem::remove(key());
  world_.Open();
  EXPECT_THAT(world_.service().Problems(), ElementsAre(HasSubstr("deploy, hub (")));
  EXPECT_THAT(WhyRefused(kWithSecrets), HasSubstr("secret \"deploy\" cannot be read with the key"));
  const absl::Status refused = world_.service().SetSecret("hub", "a new value");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << "a new key would hide that one is missing";
  EXPECT_THAT(std::string(refused.message()), HasSubstr("under it: deploy; bring it back"));
  EXPECT_TRUE(absl::IsFailedPrecondition(world_.service().RotateSecrets().status()));
  EXPECT_FALSE(std::filesystem::exists(key()));
  ASSERT_TRUE(base::WriteFileAtomic(key(), std::string(64, 'b') + "\n", 0600).ok());
  ASSERT_TRUE(world_.service().SetSecret("hub", "a new value").ok());  // under another key
  EXPECT_THAT(world_.service().Problems(),
              ElementsAre(HasSubstr(": deploy; bring their key back")));
  EXPECT_FALSE((*world_.service().ListSecrets())[0].readable);
  EXPECT_TRUE((*world_.service().ListSecrets())[1].readable);
  EXPECT_TRUE(absl::IsFailedPrecondition(world_.service().RotateSecrets().status()));
  ASSERT_TRUE(world_.Submit().ok());
  // Both keys: all can be read.
  const std::string present = *base::ReadFile(key());
  ASSERT_TRUE(base::WriteFileAtomic(key(), present + former, 0600).ok());
  EXPECT_THAT(world_.service().Problems(), IsEmpty());
}

TEST_F(SecretsTest, RotationLeavesOneNewKeyAndEveryValue) {
  SetBoth();
  const std::string former = *base::ReadFile(key());
  EXPECT_EQ(service().RotateSecrets().value(), 2);
  const std::string present = *base::ReadFile(key());
  EXPECT_EQ(present.size(), former.size());
  EXPECT_NE(present, former);
  ASSERT_TRUE(world_.Submit(kWithSecrets).ok());
  ASSERT_TRUE(IsPlaced());
  EXPECT_EQ(service().SecretsForLauncher("s.1", 0).value().at("hub"), kValue);
}

// Its launchers share a folder with the service, and no connection.
class BehindAWall final : public engine::Engine {
 public:
  explicit BehindAWall(FakeCluster& cluster) : cluster_(cluster) {}
  engine::EngineTraits traits() const override { return cluster_.traits(); }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override { return cluster_.ListNodes(); }
  bool LaunchersReachService() const override { return false; }
  absl::Status Start(const engine::Allocation& a) override { return cluster_.Start(a); }
  absl::Status Stop(const std::string& id, absl::Duration grace) override {
    return cluster_.Stop(id, grace);
  }
  absl::Status Kill(const std::string& id, int node) override { return cluster_.Kill(id, node); }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    return cluster_.Observe();
  }
  absl::Status Release(const std::string& id) override { return cluster_.Release(id); }

 private:
  FakeCluster& cluster_;
};

TEST(SecretsOfClusters, GoToNoNodeBehindAWallAndAWaitingJobFailsWithoutThem) {
  const base::TemporaryDirectory folder;
  FakeCluster cluster;
  BehindAWall wall(cluster);
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "site.yml",
                                    "computes:\n  hpc: {type: slurm, folder: /shared}\n")
                  .ok());
  const std::string job = absl::StrCat(kWithSecrets, "compute: hpc\n");
  {
    World world(folder.path(), {}, 2, &wall);
    ASSERT_TRUE(world.service().SetSecret("hub", kValue).ok());
    ASSERT_TRUE(world.service().SetSecret("deploy", kValue).ok());
    EXPECT_THAT(std::string(world.Submit(job).status().message()),
                HasSubstr("compute \"hpc\" reaches the service by its folder alone"));
  }
  World world(folder.path(), {}, 2, &cluster);
  ASSERT_TRUE(world.Submit(job).ok());
  ASSERT_TRUE(world.StepUntil([&] { return cluster.allocations().contains("s.1"); }));
  EXPECT_THAT(*world.service().DeleteSecret("hub"), ElementsAre("s"));
  EXPECT_EQ(world.State("s"), JobState::kFailed);
  EXPECT_TRUE(world.StepUntil([&] { return cluster.stopped.contains("s.1"); }));
}

// Nobody asks its registry: nothing listens there, which is a warning for a cluster.
constexpr char kWithImage[] =
    "type: command\nname: s\ncommand: echo hi\ncompute: hpc\n"
    "environment: {image: '127.0.0.1:1/x:1'}\n";
constexpr char kLogin[] = "alice:hunter22";

class LoginsOfRegistries : public ::testing::Test {
 protected:
  LoginsOfRegistries() {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / "site.yml",
                                      "computes:\n  hpc: {type: slurm, folder: /shared}\n")
                    .ok());
  }

  const base::TemporaryDirectory folder_;
  FakeCluster cluster_;
};

TEST_F(LoginsOfRegistries, GoToTheLaunchersOfJobsWhoseImagesComeFromThere) {
  cluster_.runs = true;
  World world(folder_.path(), {}, 2, &cluster_);
  ASSERT_TRUE(world.service().SetSecret("registry.127.0.0.1:1", kLogin).ok());
  ASSERT_TRUE(world.service().SetSecret("registry.ghcr.io", kLogin).ok());
  ASSERT_TRUE(world.service().SetSecret("hub", kValue).ok());
  const auto job = world.Submit(kWithImage);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(world.StepUntil([&] { return world.service().SecretsForLauncher("s.1", 0).ok(); }));
  EXPECT_THAT(*world.service().SecretsForLauncher("s.1", 0),
              ElementsAre(Pair("registry.127.0.0.1:1", kLogin)));
  EXPECT_TRUE(cluster_.plan.secret_variables.empty()) << "its processes get none";
  ASSERT_TRUE(world.service().DeleteSecret("registry.127.0.0.1:1").ok());
  EXPECT_THAT(*world.service().SecretsForLauncher("s.1", 0), IsEmpty());
}

TEST_F(LoginsOfRegistries, OfABuildAreThoseOfAllAndOfNoImageNone) {
  const std::set<std::string> known = {"hub", "registry.a.example", "registry.ghcr.io"};
  EXPECT_THAT(LoginSecretsOf({.context = "/x", .dockerfile = "Dockerfile"}, known),
              ElementsAre("registry.a.example", "registry.ghcr.io"));
  EXPECT_THAT(LoginSecretsOf({.reference = "ghcr.io/x"}, known), ElementsAre("registry.ghcr.io"));
  EXPECT_THAT(LoginSecretsOf({}, known), IsEmpty());
}

TEST_F(LoginsOfRegistries, MustBeAUserNameAndAPassword) {
  World world(folder_.path(), {}, 2, &cluster_);
  const std::string why(world.service().SetSecret("registry.ghcr.io", kValue).message());
  EXPECT_THAT(why, HasSubstr("secret \"registry.ghcr.io\": a registry's login is"));
  EXPECT_EQ(why.find(kValue), std::string::npos);
}

}  // namespace
}  // namespace tutti::service
