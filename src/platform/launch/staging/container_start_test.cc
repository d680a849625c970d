#include "platform/launch/staging/container_start.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Stands for podman: notes what it is told, and fails as often as `failures` says.
constexpr char kPodman[] = R"(#!/bin/sh
here=${0%/*}
echo "$@" >>"$here/calls"
left=$(cat "$here/failures" 2>/dev/null || echo 0)
[ "$left" = 0 ] || { echo $((left - 1)) >"$here/failures"; exit 125; }
)";

class ContainerStartTest : public ::testing::Test {
 protected:
  ContainerStartTest() {
    EXPECT_TRUE(base::WriteFileAtomic(bin_.path() / "podman", kPodman, 0755).ok());
    ::setenv("PATH", absl::StrCat(bin_.path().string(), ":/usr/bin:/bin").c_str(), 1);
    plan_.allocation_id = "brave_ant.1";
    plan_.node_index = 1;
    plan_.nodes = {{"n1", "10.0.0.1", 0, 2}, {"n2", "10.0.0.2", 2, 2}};
    plan_.directory = "/state/n2/brave_ant.1";
    plan_.environment.image = {"a.example/b:1", "", "", "job.yml:7"};
    facts_.image = "sha256:11";
  }
  ~ContainerStartTest() override { ::setenv("PATH", path_.c_str(), 1); }

  ContainerStart Start() {
    auto start = ContainerStartOf(plan_, 1, "echo 'a b'", facts_);
    EXPECT_TRUE(start.ok()) << start.status();
    return start.value_or(ContainerStart());
  }
  void AddInput(const std::string& name, const std::string& path) {
    plan_.inputs[name] = {.path = path};
    facts_.inputs[name] = path;
  }
  static std::vector<std::string> Gpus(const ContainerStart& start) {
    std::vector<std::string> gpus;
    for (absl::string_view argument : start.arguments) {
      if (absl::ConsumePrefix(&argument, "--device=nvidia.com/gpu=")) gpus.emplace_back(argument);
    }
    return gpus;
  }
  std::string Calls() const { return base::ReadFile(bin_.path() / "calls", 1 << 20).value_or(""); }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory bin_;
  spec::LaunchPlan plan_;
  NodeFacts facts_;
};

TEST_F(ContainerStartTest, RunsTheCommandByTheImagesShellAsOneWord) {
  const std::vector<std::string> arguments = Start().arguments;
  ASSERT_GE(arguments.size(), 8u);
  EXPECT_EQ(arguments[0], (bin_.path() / "podman").string());
  EXPECT_EQ(arguments[1], "run");
  EXPECT_THAT(arguments, Contains(testing::MatchesRegex("--name=tutti-brave_ant.1-[0-9a-f]+-1")));
  EXPECT_THAT(arguments, Contains("--label=tutti.folder=/state/n2/brave_ant.1"));
  EXPECT_THAT(arguments, Contains("--label=tutti.root=/state"));
  EXPECT_THAT(arguments, Contains(StartsWith("--workdir=/state/n2/brave_ant.1/")));
  const std::vector<std::string> end(arguments.end() - 6, arguments.end());
  EXPECT_EQ(end[0], "sha256:11");
  EXPECT_THAT(end[3], HasSubstr("exec /bin/bash -c \"$1\""));
  EXPECT_EQ(end[5], "echo 'a b'");
}

TEST_F(ContainerStartTest, InputsAreMountedOnceAndForReadingOnly) {
  AddInput("train", "/data/train");
  AddInput("again", "/data/train");
  AddInput("staged", "/state/n2/brave_ant.1/inputs/x");  // is in the allocation's folder
  plan_.inputs["n"] = {.type = "integer", .literal = "17"};
  facts_.inputs["n"] = "17";
  const std::vector<std::string> arguments = Start().arguments;
  EXPECT_EQ(std::count(arguments.begin(), arguments.end(), "--volume=/data/train:/data/train:ro"),
            1);
  EXPECT_THAT(arguments, Contains("--volume=/state/n2/brave_ant.1:/state/n2/brave_ant.1"));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("inputs/x"))));
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--volume=17"))));
}

TEST_F(ContainerStartTest, OfATableTheFilesAreMountedThatItsPatternsMatchAndNoSourceOfCopies) {
  AddInput("t.paths[0]", "/data/all");
  plan_.inputs["t.paths[0]"].table = "t";
  plan_.inputs["t.paths[0]"].pattern = "*/x.csv";
  AddInput("u.paths[0]", "/data/copied");
  plan_.inputs["u.paths[0]"].table = "u";
  plan_.inputs["u.paths[0]"].mode = "download";
  AddInput("v.paths[0]", "/data/whole");
  plan_.inputs["v.paths[0]"].table = "v";
  const base::TemporaryDirectory folder;
  const std::string there = folder.path() / "x.csv", gone = folder.path() / "gone/x.csv";
  ASSERT_TRUE(base::WriteFileAtomic(there, "1").ok());
  facts_.matched = {there, gone};
  const std::vector<std::string> arguments = Start().arguments;
  EXPECT_THAT(arguments, Contains(absl::StrCat("--volume=", there, ":", there, ":ro")));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr(gone)))) << "podman would start nothing";
  EXPECT_THAT(arguments, Contains("--volume=/data/whole:/data/whole:ro"));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("/data/all:"))));
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("/data/copied"))));
}

TEST_F(ContainerStartTest, TheFolderThatAllNodesOfTheMachineHaveIsMountedOnEach) {
  plan_.boot_id = "this machine's";
  const std::string shared = "/state/n1/brave_ant.1/scratch";
  EXPECT_THAT(Start().arguments, Contains(absl::StrCat("--volume=", shared, ":", shared)));
}

TEST_F(ContainerStartTest, APathWithAColonIsMountedByTheOtherOption) {
  AddInput("run", "/data/run:3");
  EXPECT_THAT(Start().arguments,
              Contains("--mount=type=bind,source=/data/run:3,target=/data/run:3,readonly"));
  AddInput("run", "/data/run:3,4");
  const auto refused = ContainerStartOf(plan_, 0, "true", facts_);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("/data/run:3,4"));
}

TEST_F(ContainerStartTest, NoSecretStandsOnTheCommandLine) {
  plan_.environment_variables["API_KEY"] = "s3cret";
  const ContainerStart start = Start();
  EXPECT_THAT(start.arguments, Contains("--env=API_KEY"));
  EXPECT_THAT(start.arguments, Each(Not(HasSubstr("s3cret"))));
  EXPECT_EQ(start.environment.at("API_KEY"), "s3cret");
}

TEST_F(ContainerStartTest, AVariableOfDockerArgsStandsInTheEnvironmentAndNotOnTheCommandLine) {
  plan_.environment_variables["BOTH"] = "of the job";
  plan_.container_options = {"--env=API_KEY=s3cret=1", "--ulimit=nofile=9",  "--env=BOTH=s3cret",
                             "--env=RANK=s3cret",      "--env=TWICE=s3cret", "--env=TWICE=last",
                             "--env=NO_VALUE"};
  const ContainerStart start = Start();
  EXPECT_THAT(start.arguments, Contains("--env=API_KEY"));
  EXPECT_THAT(start.arguments, Contains("--env=NO_VALUE"));
  EXPECT_THAT(start.arguments, Contains("--ulimit=nofile=9"));
  EXPECT_THAT(start.arguments, Each(Not(HasSubstr("s3cret"))));
  EXPECT_EQ(start.environment.at("API_KEY"), "s3cret=1");
  EXPECT_EQ(start.environment.at("BOTH"), "of the job");
  EXPECT_EQ(start.environment.at("RANK"), "3");
  EXPECT_EQ(start.environment.at("TWICE"), "last");
}

TEST_F(ContainerStartTest, PodmanIsNotToldTheValueOfASecret) {
  const base::TemporaryDirectory folder;
  const std::string file = folder.path() / "TOKEN";
  ASSERT_TRUE(base::WriteFileAtomic(file, "a 'quoted' $value\n\n").ok());
  plan_.secret_variables = {{"TOKEN", "hub"}, {"RANK", "hub"}};
  facts_.secrets_in_files = {{"TOKEN", file}, {"RANK", file}};
  facts_.secrets = {{"KEY", "/dev/shm/x/KEY"}};
  const ContainerStart start = Start();
  EXPECT_FALSE(start.environment.contains("TOKEN"));
  EXPECT_EQ(start.environment.at("KEY"), "/dev/shm/x/KEY");
  EXPECT_THAT(start.arguments, Contains("--env=KEY"));
  EXPECT_THAT(start.arguments, Not(Contains("--env=TOKEN")));
  // This machine's shell does what the container's does.
  const auto script = std::find(start.arguments.begin(), start.arguments.end(), "-c") + 1;
  const std::string reads = script->substr(0, script->find("if [ -x"));
  EXPECT_THAT(reads, Not(HasSubstr("RANK"))) << "which process it is stays the contract's";
  const auto said =
      base::RunCommand({.arguments = {"/bin/sh", "-c", reads + "printf '%s' \"$TOKEN\""}}, "",
                       base::Deadline::After(base::Patient(absl::Seconds(20))));
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->out, "a 'quoted' $value\n\n");
}

TEST_F(ContainerStartTest, TheTokenOfTheJobsRunIsReadWithoutAProgramOfTheImage) {
  const base::TemporaryDirectory folder;
  const std::string file = folder.path() / "TOKEN";
  facts_.secrets_in_files = {{"MLFLOW_TRACKING_TOKEN", file}};
  const ContainerStart start = Start();
  const auto script = std::find(start.arguments.begin(), start.arguments.end(), "-c") + 1;
  const std::string reads = script->substr(0, script->find("if [ -x"));
  const auto said = [&] {
    const auto ran = base::RunCommand(
        {.arguments = {"/bin/sh", "-c", "PATH=; " + reads + "echo \"[$MLFLOW_TRACKING_TOKEN]\""}},
        "", base::Deadline::After(base::Patient(absl::Seconds(20))));
    return ran.ok() ? ran->out : std::string(ran.status().message());
  };
  EXPECT_EQ(said(), "[]\n") << "a file that is away ends no job";
  ASSERT_TRUE(base::WriteFileAtomic(file, "beef.01").ok());
  EXPECT_EQ(said(), "[beef.01]\n");
}

TEST_F(ContainerStartTest, WhatSteersPodmanIsSetInTheContainerAlone) {
  plan_.environment_variables["CONTAINER_HOST"] = "tcp://elsewhere";
  const ContainerStart start = Start();
  EXPECT_FALSE(start.environment.contains("CONTAINER_HOST"));
  EXPECT_EQ(start.environment.at("PATH"), std::getenv("PATH"));
  EXPECT_THAT(start.arguments, Each(Not(HasSubstr("tcp://elsewhere")))) << "others may read them";
}

TEST_F(ContainerStartTest, TheShellOfTheContainerSetsWhatSteersPodman) {
  const std::string odd = "a \"b\" $c\n`d`";
  for (const char* name :
       {"CONTAINER_HOST", "GO_SECRET", "_KEY", "DOCKER_AUTH", "REGISTRY_TOKEN"}) {
    plan_.environment_variables[name] = odd;
  }
  auto start = ContainerStartOf(plan_, 1, "/usr/bin/env -0", facts_);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_THAT(start->arguments, Each(Not(HasSubstr("`d`"))));
  // The shell runs what follows the image, with what podman would hand on.
  base::ChildOptions shell{.arguments = {start->arguments.end() - 5, start->arguments.end()}};
  for (const std::string& argument : start->arguments) {
    absl::string_view name = argument;
    if (absl::ConsumePrefix(&name, "--env=")) {
      shell.environment[std::string(name)] = start->environment.at(std::string(name));
    }
  }
  const auto result =
      base::RunCommand(shell, "", base::Deadline::After(base::Patient(absl::Seconds(20))));
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<std::string> inside = absl::StrSplit(result->out, '\0');
  for (const char* name :
       {"CONTAINER_HOST", "GO_SECRET", "_KEY", "DOCKER_AUTH", "REGISTRY_TOKEN"}) {
    EXPECT_THAT(inside, Contains(absl::StrCat(name, "=", odd)));
  }
  EXPECT_THAT(inside, Each(Not(StartsWith("TUTTI_VALUE_OF_"))));
}

TEST_F(ContainerStartTest, OptionsOfTheJobAreHandedOnButSharedMemoryIsTheNodes) {
  plan_.container_options = {"--cap-add=SYS_PTRACE", "--shm-size=2g"};
  const std::vector<std::string> arguments = Start().arguments;
  EXPECT_THAT(arguments, Contains("--cap-add=SYS_PTRACE"));
  EXPECT_THAT(arguments, Not(Contains(StartsWith("--shm-size"))));
}

TEST_F(ContainerStartTest, AContainerHasTheJobsGpusAndNoneThatItsOptionsName) {
  plan_.cores = {6, 7};
  plan_.gpus = facts_.gpus = {"3"};
  facts_.has_cdi = true;
  facts_.gpu_names = {"0", "1", "2", "3"};
  plan_.container_options = {"--device=nvidia.com/gpu=all", "--device=nvidia.com/gpu=0",
                             "--env=NVIDIA_VISIBLE_DEVICES=all", "--device=/dev/fuse"};
  const ContainerStart start = Start();
  EXPECT_THAT(Gpus(start), ElementsAre("3"));
  EXPECT_THAT(start.arguments, Contains("--device=/dev/fuse"));
  EXPECT_EQ(start.environment.at("CUDA_VISIBLE_DEVICES"), "0");
  EXPECT_EQ(start.environment.at("NVIDIA_VISIBLE_DEVICES"), "void");
  plan_.gpus = facts_.gpus = {};
  EXPECT_THAT(Gpus(Start()), IsEmpty());
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "");
}

TEST_F(ContainerStartTest, AWholeNodesGpusAreNumberedAnewToo) {
  facts_.gpus = {"6", "5", "7", "GPU-8a5c"};
  facts_.has_cdi = true;
  facts_.gpu_names = {"0", "1", "2", "3", "4", "5", "6", "7"};
  EXPECT_THAT(Gpus(Start()), ElementsAre("6", "5", "7", "GPU-8a5c"));
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "1,0,2,GPU-8a5c");
  plan_.container_options = {"--privileged"};  // which adds all others
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "6,5,7,GPU-8a5c");
  plan_.environment_variables["CUDA_VISIBLE_DEVICES"] = "1";
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "1");
}

TEST_F(ContainerStartTest, WhereADeviceGroupHidesGpusPodmanIsToldTheNodesOwnNumbers) {
  facts_.gpus = {"0", "1"};
  facts_.has_cdi = true;
  facts_.gpu_names = {"3", "5"};
  EXPECT_THAT(Gpus(Start()), ElementsAre("3", "5"));
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "0,1");
  facts_.gpu_names = {"GPU-a", "GPU-b"};
  EXPECT_THAT(Gpus(Start()), ElementsAre("GPU-a", "GPU-b"));
  EXPECT_EQ(Start().environment.at("CUDA_VISIBLE_DEVICES"), "0,1");
  facts_.gpu_names.emplace();  // none may be opened
  EXPECT_THAT(Gpus(Start()), IsEmpty());
  facts_.gpu_names.reset();  // the machine has no such files
  EXPECT_THAT(Gpus(Start()), ElementsAre("0", "1"));
  facts_.has_cdi = false;
  EXPECT_THAT(Gpus(Start()), IsEmpty());
}

TEST_F(ContainerStartTest, WhatTheNodeCannotGiveIsRemarked) {
  plan_.container_options = {"--shm-size=1k"};
  EXPECT_EQ(ContainerRemark(plan_, facts_), "");
  plan_.container_options = {"--shm-size=1048576g"};
  EXPECT_THAT(ContainerRemark(plan_, facts_), StartsWith("shm_size 1048576g is more than the "));
  plan_.container_options = {"--shm-size=much"};
  EXPECT_EQ(ContainerRemark(plan_, facts_), "") << "podman is to say what is wrong with it";
  facts_.gpus = {"0"};
  EXPECT_THAT(ContainerRemark(plan_, facts_), HasSubstr("nvidia-ctk cdi generate"));
  facts_.has_cdi = true;
  EXPECT_EQ(ContainerRemark(plan_, facts_), "");
}

TEST_F(ContainerStartTest, TheContainersOfThisNodeAreNotedUntilTheyAreRemoved) {
  const base::TemporaryDirectory folder;
  plan_.directory = folder.path();
  ASSERT_TRUE(NoteContainers(plan_).ok());
  const std::vector<std::string> arguments = Start().arguments;
  const auto name = std::find_if(
      arguments.begin(), arguments.end(),
      [](const std::string& argument) { return absl::StartsWith(argument, "--name="); });
  const std::string note = *base::ReadFile(folder.path() / "containers", 4096);
  EXPECT_THAT(note, HasSubstr(absl::StrCat(name->substr(7), "\n")));
  ASSERT_TRUE(RemoveContainers(plan_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "containers"));
  EXPECT_THAT(Calls(), StartsWith("rm --force --ignore --volumes --time=0 "));
  EXPECT_THAT(Calls(), HasSubstr(name->substr(7)));
  EXPECT_THAT(Calls(), HasSubstr("tutti-brave_ant.1-1-0 tutti-brave_ant.1-1-1"))
      << "as a launcher of a version before has called them";
}

TEST_F(ContainerStartTest, TheNoteStaysIfPodmanDoesNotRemoveThem) {
  const base::TemporaryDirectory folder;
  plan_.directory = folder.path();
  ASSERT_TRUE(NoteContainers(plan_).ok());
  ASSERT_TRUE(base::WriteFileAtomic(bin_.path() / "failures", "99\n").ok());
  EXPECT_FALSE(RemoveContainers(plan_).ok());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "containers"));
}

TEST_F(ContainerStartTest, WithoutAnImageThereIsNothingToRemove) {
  plan_.environment.image = {};
  ASSERT_TRUE(RemoveContainers(plan_).ok());
  EXPECT_THAT(Calls(), IsEmpty());
}

}  // namespace
}  // namespace tutti::launch
