#include "platform/engine/slurm/unshared_job.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/command.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/engine/slurm/slurm_engine_test_support.h"

namespace tutti::engine {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Fault = SlurmCommandsFake::Fault;

TEST_F(SlurmEngineTest, WhatNodesThatShareNothingNeedTravelsInTheScriptAlone) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  const std::string script = Script("a.1");
  for (const char* part : {"token='s3cret'", "host='10.1.0.1'", "port='6280'", "sha256:0123",
                           "/scratch/my disk/tutti-", "\"job_id\":\"j\""}) {
    EXPECT_THAT(script, HasSubstr(part));
  }
  struct stat info = {};
  ASSERT_EQ(::stat((root_.path() / "shared/a.1/batch.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  const std::vector<std::string> command = slurm_.last_sbatch();
  EXPECT_THAT(command, Contains("--output=/dev/null"));
  EXPECT_THAT(command, Contains("--chdir=/"));
  EXPECT_THAT(command, Not(Contains(HasSubstr("s3cret"))));
  EXPECT_FALSE(std::filesystem::exists(root_.path() / "shared/launcher.json"));
}

TEST_F(SlurmEngineTest, WhatMovesObjectsIsNamedToJobsThatUseStores) {
  OpenUnshared();
  Allocation gang = Gang("a.1", 2);
  gang.plan.inputs["plain"].path = "/data";
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(Script("a.1"), Not(HasSubstr("sha256:4567")));
  gang = Gang("a.2", 2);
  gang.plan.inputs["stored"].place =
      spec::DataPlace{.kind = spec::StoreKind::kS3, .container = "b"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.2");
  EXPECT_THAT(Script("a.2"), HasSubstr("\"storage_program\":\"sha256:4567\""));
  gang = Gang("a.3", 2);
  gang.plan.outputs["stored"].place =
      spec::DataPlace{.kind = spec::StoreKind::kS3, .container = "b", .path = "${{name}}"};
  ASSERT_TRUE(engine_->Start(gang).ok());
  AwaitRunning("a.3");
  EXPECT_THAT(Script("a.3"), HasSubstr("\"storage_program\":\"sha256:4567\""));
}

TEST_F(SlurmEngineTest, TheScriptsSecretComesToNoEnvironment) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  const std::string script = Script("a.1");
  EXPECT_THAT(script.substr(script.find("bash -c \"$share\"")), HasSubstr("export -n token"));
  base::ChildOptions bash;
  bash.arguments = {"bash", "-c", script.substr(0, script.find("# call METHOD")) + "\nenv"};
  bash.environment = base::CurrentEnvironment();
  for (const char* name : {"token", "service", "plan"}) bash.environment[name] = "the user's";
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "",
                                    base::Deadline::After(base::Patient(absl::Seconds(20))));
  ASSERT_TRUE(ran.ok() && ran->exit.ok());
  EXPECT_THAT(ran->out, AllOf(HasSubstr("PATH="), Not(HasSubstr("s3cret"))));
}

TEST_F(SlurmEngineTest, AServiceThatMovedIsToldToNodesBeforeTheirJobIsSubmitted) {
  slurm_.SetFault("sbatch", Fault::kNothing);
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  Await("a.1", [](const AllocationState& s) { return s.waits && !s.reason.empty(); });
  Announce("http://10.1.0.1:7000");
  Open();
  slurm_.SetFault("sbatch", Fault::kNone);
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  AwaitRunning("a.1");
  EXPECT_THAT(Script("a.1"), HasSubstr("port='7000'"));
}

TEST_F(SlurmEngineTest, NodesThatShareNothingAreToldToStopByTheScript) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  AwaitRunning("a.1");
  ASSERT_TRUE(engine_->Stop("a.1", absl::Seconds(1)).ok());
  AwaitEnd("a.1");
  EXPECT_THAT(listening_.last("scancel"),
              ElementsAre("scancel", "--batch", "--signal=USR1", "--name=j", "1"));
  // Nothing of it lies here that a launcher could deliver.
  ASSERT_TRUE(engine_->Start(Gang("a.1", 2)).ok());
  EXPECT_THAT(State("a.1").launcher_alive, ElementsAre(false, false));
}

TEST_F(SlurmEngineTest, AnAddressThatABareShellCannotSpeakIsRefused) {
  OpenUnshared();
  for (const char* address : {"https://service.example", "https://10.1.0.1:6280", "http://a"}) {
    Announce(address);
    EXPECT_EQ(engine_->Start(Gang("a.1")).code(), absl::StatusCode::kInvalidArgument) << address;
  }
  Announce("http://10.1.0.1:6280", "PEM");
  EXPECT_EQ(engine_->Start(Gang("a.1")).code(), absl::StatusCode::kInvalidArgument);
}

// A service whose machine still accepts, and that never answers.
class UnsharedByTls : public SlurmEngineTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, UnsharedByTls, ::testing::Bool());

TEST_P(UnsharedByTls, AServiceThatDoesNotAnswerDoesNotHoldTheNode) {
  OpenUnshared();
  if (GetParam()) Announce("https://10.1.0.1:6280", "PEM");
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const base::UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(silent.get(), name, size), 0);
  ASSERT_EQ(::listen(silent.get(), 1), 0);
  ASSERT_EQ(::getsockname(silent.get(), name, &size), 0);
  const std::string script = Script("a.1");
  base::ChildOptions bash;
  bash.arguments = {"bash", "-c",
                    absl::StrCat(script.substr(0, script.find("is_first ||")),
                                 "patience=1 host=127.0.0.1 port=", ntohs(address.sin_port),
                                 "\ncall GET /; echo \"it says $?\"")};
  bash.environment = base::CurrentEnvironment();
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "",
                                    base::Deadline::After(base::Patient(absl::Seconds(60))));
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(ran->out, "it says 1\n");
}

TEST_F(SlurmEngineTest, ANodeWithoutOpensslSaysSoByItsExitCode) {
  OpenUnshared();
  Announce("https://10.1.0.1:6280", "PEM");
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const std::string script = Script("a.1");
  base::ChildOptions bash;
  bash.arguments = {"bash", "-c",
                    script.substr(0, script.find("is_first ||")) + "\nPATH=/nowhere; on_node"};
  bash.environment = base::CurrentEnvironment();
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "",
                                    base::Deadline::After(base::Patient(absl::Seconds(60))));
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_THAT(WhyNodesGaveUp(ran->exit.code).why, HasSubstr("openssl")) << ran->err;
  EXPECT_EQ(WhyNodesGaveUp(1).why, "");
}

// As base::RetryPause, which the script cannot call.
TEST_F(SlurmEngineTest, NodesThatTheServiceLeftRestLongerEachTimeAndByChance) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const std::string script = Script("a.1");
  base::ChildOptions bash;
  bash.arguments = {"bash", "-c",
                    absl::StrCat(script.substr(0, script.find("is_first ||")), "\nat='",
                                 root_.path().native(), "' rests=0\ncall() { false; }\n",
                                 "sleep() { echo $1; [ $((++rests)) -lt 40 ] || >\"$at/stop\"; }\n",
                                 "fetch \"$at/program.tar.gz\"")};
  bash.environment = base::CurrentEnvironment();
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "",
                                    base::Deadline::After(base::Patient(absl::Seconds(60))));
  ASSERT_TRUE(ran.ok()) << ran.status();
  std::set<double> shares;
  double whole = 1;
  for (const absl::string_view line : absl::StrSplit(ran->out, '\n', absl::SkipEmpty())) {
    double seconds = 0;
    ASSERT_TRUE(absl::SimpleAtod(line, &seconds)) << line;
    EXPECT_GE(seconds, whole / 2);
    EXPECT_LE(seconds, whole);
    shares.insert(seconds / whole);
    whole = std::min(2 * whole, 8.0);
  }
  EXPECT_GT(shares.size(), 20u) << ran->out;
}

TEST_F(SlurmEngineTest, ANodeThatIsToldToStopBeforeItHasAFolderStops) {
  OpenUnshared();
  ASSERT_TRUE(engine_->Start(Gang("a.1")).ok());
  const std::string script = Script("a.1");
  base::ChildOptions bash;
  // In place of making its folder the node is told; in place of the launcher it says what it knows.
  bash.arguments = {"bash", "-c",
                    absl::StrCat(script.substr(0, script.find("is_first ||")), "\nhome='",
                                 root_.path().native(), "' folder='", root_.path().native(),
                                 "/job' spread=/nowhere SLURM_NODEID=0\n"
                                 "make_home() { kill -USR1 $$; }\nis_program() { true; }\n"
                                 "tar() { true; }\nlaunch() { true; }\n"
                                 "mv() { ls \"$folder/0\"; }\non_node")};
  bash.environment = base::CurrentEnvironment();
  bash.directory = "/";
  const auto ran = base::RunCommand(std::move(bash), "",
                                    base::Deadline::After(base::Patient(absl::Seconds(60))));
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_THAT(ran->out, HasSubstr("stop\n")) << ran->err;
}

}  // namespace
}  // namespace tutti::engine
