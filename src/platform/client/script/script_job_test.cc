// Covers: environment_choice.cc.
#include "platform/client/script/script_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <yaml-cpp/yaml.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ScriptJobTest : public testing::Test {
 protected:
  void Put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, text).ok());
  }
  YAML::Node Written(const ScriptOptions& options, const std::string& script = "train.py") {
    const auto job = JobOfScript(folder_.path() / script, options);
    EXPECT_TRUE(job.ok()) << job.status();
    remarks_ = job->remarks;
    directory_ = job->directory;
    return YAML::Load(job->text);
  }
  std::string Wrong(const ScriptOptions& options) {
    const auto job = JobOfScript(folder_.path() / "train.py", options);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(job.status().message());
  }
  base::TemporaryDirectory folder_;
  std::vector<std::string> remarks_;
  std::filesystem::path directory_;
};

TEST_F(ScriptJobTest, RunsInItsProjectsRootWhichIsSaid) {
  Put("project/src/deep/train.py", "");
  Put("project/requirements.txt", "");
  Put("project/.git/HEAD", "");
  const std::filesystem::path project = folder_.path() / "project";
  const YAML::Node job = Written({.arguments = {"x"}}, "project/src/deep/train.py");
  EXPECT_EQ(directory_, project);
  EXPECT_EQ(job["code"].as<std::string>(), ".");
  EXPECT_EQ(job["command"].as<std::string>(), "python3 src/deep/train.py x");
  EXPECT_EQ(job["environment"]["conda_file"].as<std::string>(), "./requirements.txt");
  EXPECT_THAT(remarks_,
              ElementsAre("code: " + project.string() +
                              ", since requirements.txt is there; src/deep/train.py runs in that "
                              "folder (--code says otherwise)",
                          "environment: requirements.txt in " + project.string() +
                              " (--environment says otherwise)"));
  const YAML::Node other =
      Written({.code = (project / "src/").string()}, "project/src/deep/train.py");
  EXPECT_EQ(directory_, project / "src");
  EXPECT_EQ(other["command"].as<std::string>(), "python3 deep/train.py");
  EXPECT_EQ(other["environment"].as<std::string>(), "host");
}

TEST_F(ScriptJobTest, TheNearestFolderWithAMarkIsTheRoot) {
  Put(".git/HEAD", "");
  for (const char* mark : {"requirements.txt", "pyproject.toml", "conda.yaml", "conda.yml",
                           "environment.yml", ".git"}) {
    const std::string root = absl::StrCat("of-", mark);
    Put(absl::StrCat(root, "/", mark), "dependencies: []\n");
    Put(absl::StrCat(root, "/src/environment.yaml"), "image: tutti's\n");  // says no packages
    Put(absl::StrCat(root, "/src/train.sh"), "");
    EXPECT_EQ(Written({}, root + "/src/train.sh")["command"].as<std::string>(),
              "bash src/train.sh");
    EXPECT_EQ(directory_, folder_.path() / root);
  }
  Put("src/requirements.txt", "");
  Put("src/train.py", "");
  EXPECT_EQ(Written({}, "src/train.py")["command"].as<std::string>(), "python3 train.py");
  EXPECT_EQ(directory_, folder_.path() / "src") << "its own comes first";
}

TEST_F(ScriptJobTest, AFolderInWhichAllMayWriteIsNoProject) {
  Put("shared/requirements.txt", "evil-package\n");
  Put("shared/mine/train.py", "");
  std::filesystem::permissions(folder_.path() / "shared", std::filesystem::perms::all);
  EXPECT_EQ(Written({}, "shared/mine/train.py")["environment"].as<std::string>(), "host");
  EXPECT_EQ(directory_, folder_.path() / "shared/mine");
}

TEST_F(ScriptJobTest, AHomeFolderIsNoProject) {
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  Put("requirements.txt", "");
  Put("scripts/train.py", "");
  ::setenv("HOME", folder_.path().c_str(), 1);
  EXPECT_EQ(Written({}, "scripts/train.py")["command"].as<std::string>(), "python3 train.py");
  EXPECT_EQ(directory_, folder_.path() / "scripts");
  ::setenv("HOME", home.c_str(), 1);
}

TEST_F(ScriptJobTest, ACodeFolderWithoutTheScriptIsRefused) {
  Put("train.py", "");
  Put("other/x", "");
  EXPECT_EQ(Wrong({.code = (folder_.path() / "other").string()}),
            absl::StrCat("--code ", (folder_.path() / "other").string(), ": ",
                         (folder_.path() / "train.py").string(), " does not lie in that folder"));
  EXPECT_THAT(Wrong({.code = (folder_.path() / "none").string()}),
              HasSubstr("there is no such folder"));
}

TEST_F(ScriptJobTest, SaysWhatItHasChosen) {
  Put("train.py", "import torch\n");
  const YAML::Node job = Written({.nodes = 2, .arguments = {"--tag", "a: b"}});
  EXPECT_EQ(job["command"].as<std::string>(), "python3 train.py --tag 'a: b'");
  EXPECT_EQ(job["code"].as<std::string>(), ".");
  EXPECT_EQ(job["distribution"]["type"].as<std::string>(), "pytorch");
  EXPECT_EQ(job["resources"]["instance_count"].as<int>(), 2);
  EXPECT_THAT(remarks_,
              ElementsAre(HasSubstr("distribution: pytorch, since train.py imports torch"),
                          HasSubstr("environment: host")));
}

TEST_F(ScriptJobTest, LightningIsToldThatItStartsNoOtherProcesses) {
  Put("train.py", "import torch\nimport lightning as L\n");
  Written({.nodes = 2});
  EXPECT_THAT(remarks_, Contains(HasSubstr("Lightning starts no others")));
  remarks_.clear();
  Written({.nodes = 2, .processes_per_node = 2});
  EXPECT_THAT(remarks_, Not(Contains(HasSubstr("Lightning starts no others"))));
}

TEST_F(ScriptJobTest, WhatIsSaidIsNotGuessed) {
  Put("train.py", "import torch\n");
  Put("requirements.txt", "");
  const YAML::Node job = Written({.distribution = "none", .environment = "host"});
  EXPECT_FALSE(job["distribution"].IsDefined());
  EXPECT_EQ(job["environment"].as<std::string>(), "host");
  EXPECT_THAT(remarks_, ElementsAre());
}

TEST_F(ScriptJobTest, OneProcessIsNoneOfSeveralUnlessThatIsSaid) {
  Put("train.py", "import tensorflow\n");
  EXPECT_FALSE(Written({})["distribution"].IsDefined());
  EXPECT_EQ(Written({.nodes = 3})["distribution"]["worker_count"].as<int>(), 3);
  Put("train.py", "import torch\n");
  EXPECT_FALSE(Written({})["distribution"].IsDefined());
  EXPECT_THAT(remarks_, ElementsAre(HasSubstr("environment: host")));
  const YAML::Node said = Written({.distribution = "pytorch"})["distribution"];
  EXPECT_EQ(said["process_count_per_instance"].as<int>(), 1);
}

TEST_F(ScriptJobTest, EachGpuHasAProcess) {
  Put("train.py", "");
  const YAML::Node job = Written({.gpus = 4});
  EXPECT_EQ(job["distribution"]["process_count_per_instance"].as<int>(), 4);
  EXPECT_EQ(job["resources"]["docker_args"].as<std::string>(), "--gpus=4");
}

TEST_F(ScriptJobTest, PathsAreThoseOfTheSavedFilesFolder) {
  Put("train.py", "");
  Put("conda.yaml", "dependencies: [python]\n");
  const std::filesystem::path above = folder_.path().parent_path();
  const YAML::Node job = Written({.save = (above / "job.yml").string()});
  const std::string name = folder_.path().filename().string();
  EXPECT_EQ(job["code"].as<std::string>(), "./" + name);
  EXPECT_EQ(job["environment"]["conda_file"].as<std::string>(), "./" + name + "/conda.yaml");
}

TEST_F(ScriptJobTest, InputsAreFilesFoldersOrAddresses) {
  Put("train.py", "");
  const YAML::Node inputs = Written(
      {.inputs = {"a=" + folder_.path().string(), "b=" + (folder_.path() / "train.py").string(),
                  "c=https://example.org/x.csv", "d=azureml:iris:1",
                  "e=abfss://data@team.dfs.core.windows.net/x.csv",
                  "f=abfss://data@team.dfs.core.windows.net/images"}})["inputs"];
  EXPECT_EQ(inputs["a"]["type"].as<std::string>(), "uri_folder");
  EXPECT_EQ(inputs["b"]["type"].as<std::string>(), "uri_file");
  EXPECT_EQ(inputs["c"]["path"].as<std::string>(), "https://example.org/x.csv");
  EXPECT_EQ(inputs["d"]["path"].as<std::string>(), "azureml:iris:1");
  EXPECT_EQ(inputs["c"]["type"].as<std::string>(), "uri_file");
  EXPECT_EQ(inputs["e"]["type"].as<std::string>(), "uri_file") << "a blob, fetched by https";
  EXPECT_EQ(inputs["f"]["type"].as<std::string>(), "uri_folder") << "a copy that is mapped";
  EXPECT_THAT(Wrong({.inputs = {"lr=0.1"}}), HasSubstr("after --"));
}

TEST_F(ScriptJobTest, AFileOfAFolderThatIsNotThereIsRefused) {
  const auto file = folder_.path() / "nodir/job.yml";
  const absl::Status saved = SaveJob("mine\n", file);
  EXPECT_TRUE(absl::IsInvalidArgument(saved));
  EXPECT_EQ(saved.message(), file.string() + " cannot be written: there is no folder " +
                                 file.parent_path().string() + "; make it first");
}

TEST_F(ScriptJobTest, AnExistingFileIsNotOverwritten) {
  Put("job.yml", "mine\n");
  const auto file = folder_.path() / "job.yml";
  EXPECT_TRUE(absl::IsAlreadyExists(SaveJob("other\n", file)));
  EXPECT_TRUE(SaveJob("mine\n", file).ok());
  EXPECT_EQ(*base::ReadFile(file), "mine\n");
}

}  // namespace
}  // namespace tutti::client
