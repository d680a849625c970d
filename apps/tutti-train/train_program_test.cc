// The program as its users meet it: flags, files, exit codes, signals, lost ranks.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "runtime/models/model.h"
#include "runtime/train/setup/image_folder_fake.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const absl::Duration kPatience = base::Patient(absl::Seconds(120));

class ProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new base::TemporaryDirectory();
    train::WriteImageFolder(folder_->path() / "data", 64, 16, 2);
  }
  static void TearDownTestSuite() { delete folder_; }

  std::string Data() const { return folder_->path() / "data"; }
  fs::path Out() const { return own_.path() / "outputs"; }
  fs::path Said(const std::string& name) const { return own_.path() / name; }
  std::string Read(const fs::path& path) const {
    const auto text = base::ReadFile(path);
    return text.ok() ? *text : "";
  }

  // Starts the program; what it says goes to Said(name).
  base::ChildProcess Start(std::vector<std::string> arguments, const std::string& name = "said",
                           const std::map<std::string, std::string>& environment = {}) {
    base::ChildOptions options;
    options.arguments = {TUTTI_TRAIN};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.environment = base::CurrentEnvironment();
    for (const auto& [key, value] : environment) options.environment[key] = value;
    const auto fd = base::Open(Said(name), O_WRONLY | O_CREAT | O_TRUNC);
    options.stdout_fd = options.stderr_fd = fd->get();
    options.die_with_parent = true;
    return *base::ChildProcess::Start(options);
  }

  int ExitCode(base::ChildProcess& child) {
    const auto exit = child.Wait(base::Deadline::After(kPatience));
    EXPECT_TRUE(exit.ok()) << exit.status();
    return exit.ok() ? (exit->signal != 0 ? -exit->signal : exit->code) : -1;
  }

  // The runs in a store of MLflow's, each as its "status: N".
  std::vector<std::string> MlflowStatuses(const fs::path& store) const {
    std::vector<std::string> statuses;
    for (const auto& run : fs::directory_iterator(store / "0")) {
      if (!run.is_directory()) continue;
      const std::string meta = Read(run.path() / "meta.yaml");
      statuses.push_back(meta.substr(meta.find("\nstatus:") + 1, 9));
    }
    return statuses;
  }

  int Run(std::vector<std::string> arguments) {
    auto child = Start(std::move(arguments));
    return ExitCode(child);
  }

  // Waits until the run has reported a step after `step`.
  bool AwaitStep(const fs::path& metrics) {
    return base::AwaitPatiently(
        absl::Seconds(120), [&] { return absl::StrContains(Read(metrics), "\"event\":\"step\""); });
  }

  std::vector<std::string> Endless() const {
    return {"--data",           Data(), "--output",           Out(),
            "--batch",          "16",   "--epochs",           "100000",
            "--evaluate-every", "0",    "--checkpoint-every", "0",
            "--threads",        "1"};
  }

  inline static base::TemporaryDirectory* folder_ = nullptr;
  const base::TemporaryDirectory own_;
};

TEST_F(ProgramTest, HelpIsGroupedAndNamesTheExitCodes) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(Read(Said("said")), AllOf(HasSubstr("Optimizer:"), HasSubstr("--warmup-epochs"),
                                        HasSubstr("Exit codes:")));
}

TEST_F(ProgramTest, DescribesTheMachineInALineOfJson) {
  EXPECT_EQ(Run({"--describe-machine"}), 0) << Read(Said("said"));
  const std::string said = Read(Said("said"));
  const auto report = nlohmann::json::parse(said, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << said;
  EXPECT_GT(report["images_per_second"], 0);
  EXPECT_THAT(report["why"].get<std::string>(), HasSubstr("(auto): this "));
}

TEST_F(ProgramTest, ListsEveryModelWithItsInputAndPurpose) {
  EXPECT_EQ(Run({"--list-models"}), 0);
  const std::string said = Read(Said("said"));
  for (const std::string& name : models::ModelNames()) EXPECT_THAT(said, HasSubstr(name + " "));
  EXPECT_THAT(said, ContainsRegex("resnet20 +32x32 +classification\n"));
  EXPECT_THAT(said, ContainsRegex("resnet50 +224x224 +classification\n"));
}

TEST_F(ProgramTest, WrongFlagsAreNamedWithTheRemedy) {
  EXPECT_EQ(Run({"--data", Data(), "--epoch", "3"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("unknown flag \"--epoch\" (did you mean --epochs?)"));
  EXPECT_EQ(Run({"--data", Data(), "--lr", "fast"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("--lr: \"fast\" is not a number"));
  EXPECT_EQ(Run({"--data", Data(), "--optimizer", "larz"}), 2);
  const std::string said = Read(Said("said"));
  EXPECT_THAT(said, HasSubstr("--optimizer: \"larz\" is not one of sgd, adamw, "));
  EXPECT_THAT(said, HasSubstr(" (did you mean \"lars\"?)"));
  EXPECT_EQ(Run({"--data", Data(), "--optimizer", "lars", "--trust", "0"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("--trust must be above 0"));
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("--data is missing"));
}

TEST_F(ProgramTest, WrongInputIsAnErrorThatNamesIt) {
  EXPECT_EQ(Run({"--data", "/nowhere/data"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("/nowhere/data"));
  EXPECT_EQ(Run({"--data", Data(), "--model", "resnet2"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("did you mean \"resnet20\"?"));
  EXPECT_EQ(Run({"--data", Data(), "--batch", "16", "--model", "script:/nowhere.pt"}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("no TorchScript file /nowhere.pt"));
  std::ofstream(Said("recipe.yml")) << "model: resnet20\nepoch: 3\n";
  EXPECT_EQ(Run({"--config", Said("recipe.yml"), "--data", Data()}), 2);
  EXPECT_THAT(Read(Said("said")), HasSubstr("recipe.yml:2: unknown key \"epoch\""));
}

TEST_F(ProgramTest, FlagsWinOverTheFileAndTheModelIsWritten) {
  std::ofstream(Said("recipe.yml")) << "epochs: 7\nbatch: 16\nsync-bn: true\nthreads: 1\n";
  EXPECT_EQ(Run({"--config", Said("recipe.yml"), "--data", Data(), "--output", Out(), "--epochs",
                 "1", "--no-sync-bn", "--mlflow", Said("mlruns")}),
            0)
      << Read(Said("said"));
  EXPECT_THAT(Read(Said("said")), AllOf(HasSubstr("1 epoch of 4 steps"), HasSubstr("top-1 ")));
  EXPECT_TRUE(fs::exists(Out() / "model" / "manifest.json"));
  EXPECT_THAT(MlflowStatuses(Said("mlruns")), ElementsAre("status: 3")) << "finished";
}

TEST_F(ProgramTest, TheExamplesRecipeIsAccepted) {
  const std::string recipe = TUTTI_CIFAR10 "/code/recipe.yml";
  EXPECT_EQ(Run({"--config", recipe, "--data", "/nowhere"}), 2);
  EXPECT_THAT(Read(Said("said")), AllOf(HasSubstr("/nowhere"), Not(HasSubstr("recipe.yml"))));
}

// The machine has a driver, and libtorch comes without the libraries that a GPU needs.
TEST_F(ProgramTest, AGpuThatLibtorchCannotUseIsSaid) {
  fs::create_directory(own_.path() / "driver");
  fs::create_symlink(TUTTI_FAKE_GPU, own_.path() / "driver" / "libcuda.so.1");
  const std::map<std::string, std::string> driver = {{"LD_LIBRARY_PATH", own_.path() / "driver"}};
  std::vector<std::string> arguments = {"--data",      Data(), "--output",  Out(), "--batch", "16",
                                        "--max-steps", "1",    "--threads", "1",   "--device"};
  arguments.push_back("cuda");
  auto refused = Start(arguments, "refused", driver);
  EXPECT_EQ(ExitCode(refused), 2);
  const std::string why = Read(Said("refused"));
  if (why.find("the driver shows none") != std::string::npos) GTEST_SKIP() << "libtorch has them";
  EXPECT_THAT(why, AllOf(HasSubstr("libtorch cannot use it: "), HasSubstr("tools/setup brings")));
  arguments.back() = "auto";
  auto trains = Start(arguments, "trains", driver);
  EXPECT_EQ(ExitCode(trains), 0);
  EXPECT_THAT(Read(Said("trains")), HasSubstr("computing on the CPU: there is no GPU"));
}

TEST_F(ProgramTest, SigtermWritesACheckpointThatResumeTakesUp) {
  const std::map<std::string, std::string> mlflow = {{"MLFLOW_TRACKING_URI", Said("mlruns")}};
  auto child = Start(Endless(), "said", mlflow);
  ASSERT_TRUE(AwaitStep(Out() / "metrics.jsonl")) << Read(Said("said"));
  EXPECT_THAT(MlflowStatuses(Said("mlruns")), ElementsAre("status: 1"));
  ASSERT_EQ(kill(child.pid(), SIGTERM), 0);
  EXPECT_EQ(ExitCode(child), 143);
  EXPECT_THAT(Read(Said("said")), HasSubstr("go on with --resume"));
  EXPECT_THAT(MlflowStatuses(Said("mlruns")), ElementsAre("status: 5")) << "killed";

  auto arguments = Endless();
  arguments.push_back("--resume");
  std::map<std::string, std::string> in_a_job = mlflow;
  in_a_job["TUTTI_JOB_ID"] = "train-1";
  auto again = Start(arguments, "said", in_a_job);
  base::AwaitPatiently(absl::Seconds(120),
                       [&] { return absl::StrContains(Read(Said("said")), "resumed after step"); });
  EXPECT_THAT(MlflowStatuses(Said("mlruns")), ElementsAre("status: 1")) << "the same, running";
  kill(again.pid(), SIGTERM);
  EXPECT_EQ(ExitCode(again), 143);
  EXPECT_THAT(Read(Said("said")), HasSubstr("go on with tutti job rerun train-1 --resume"));
}

TEST_F(ProgramTest, AJobThatResumesGoesOnFromTheLastCheckpointWithoutAFlag) {
  std::vector<std::string> arguments = {"--data", Data(),      "--output", Out(),      "--batch",
                                        "16",     "--threads", "1",        "--epochs", "1"};
  const std::map<std::string, std::string> resumes = {{"TUTTI_RESUME_FROM", "earlier"}};
  auto first = Start(arguments, "first", resumes);
  EXPECT_EQ(ExitCode(first), 0) << "where there is no checkpoint it begins";
  arguments.back() = "2";
  auto refused = Start(arguments, "refused", {{"TUTTI_RESUME_FROM", ""}});
  EXPECT_EQ(ExitCode(refused), 2);
  EXPECT_THAT(Read(Said("refused")), HasSubstr("go on from there with --resume"));
  auto again = Start(arguments, "again", resumes);
  EXPECT_EQ(ExitCode(again), 0);
  EXPECT_THAT(Read(Said("again")), HasSubstr("resumed after step 4"));
}

TEST_F(ProgramTest, ADivergingRunSaysWhere) {
  EXPECT_EQ(Run({"--data", Data(), "--output", Out(), "--batch", "16", "--epochs", "9", "--lr",
                 "1e30", "--threads", "1", "--mlflow", Said("mlruns")}),
            4);
  EXPECT_THAT(MlflowStatuses(Said("mlruns")), ElementsAre("status: 4")) << "failed";
  EXPECT_THAT(Read(Said("said")), AllOf(HasSubstr("step "), HasSubstr("the loss of rank 0 is")));
}

int FreePort() {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

TEST_F(ProgramTest, AKilledRankIsNamedByTheOther) {
  std::map<std::string, std::string> environment = {{"WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", std::to_string(FreePort())},
                                                    {"TUTTI_JOB_TOKEN", "a token"},
                                                    {"MLFLOW_TRACKING_URI", "http://a:b@c/"}};
  std::vector<base::ChildProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    environment["RANK"] = environment["NODE_RANK"] = std::to_string(rank);
    ranks.push_back(Start(Endless(), "rank-" + std::to_string(rank), environment));
  }
  ASSERT_TRUE(AwaitStep(Out() / "metrics.jsonl")) << Read(Said("rank-0"));
  ASSERT_EQ(kill(ranks[1].pid(), SIGKILL), 0);
  EXPECT_EQ(ExitCode(ranks[1]), -SIGKILL);
  EXPECT_EQ(ExitCode(ranks[0]), 3);
  EXPECT_THAT(Read(Said("rank-0")),
              AllOf(HasSubstr("rank 1"), HasSubstr("MLFLOW_TRACKING_URI begins with http:, and")));
  EXPECT_THAT(Read(Said("rank-1")), Not(HasSubstr("MLFLOW")));
}

}  // namespace
}  // namespace tutti
