// Covers: plain_script.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

class CheckPathsTest : public ::testing::Test {
 protected:
  CheckPathsTest() {
    EXPECT_TRUE(base::MakeDirectories(directory_.path() / "src/lib").ok());
    EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / "src/train.py", "").ok());
    EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / "file", "").ok());
  }

  std::string Check(absl::string_view text) {
    const auto result = ReadJobFile(text, "job.yml", directory_.path());
    if (!result.ok()) return std::string(result.status().message());
    warnings_.clear();
    const absl::Status status = CheckPaths(result->spec, warnings_);
    return std::string(status.message());
  }

  base::TemporaryDirectory directory_;
  std::vector<std::string> warnings_;  // of the last check
};

TEST_F(CheckPathsTest, NamesWhatDoesNotExist) {
  const std::string root = directory_.path().string();
  EXPECT_EQ(Check("command: x\ncode: ./nope\ninputs:\n  data:\n    path: gone\n"),
            absl::StrCat("job.yml:2: code: ", root,
                         "/nope does not exist\njob.yml:5: input "
                         "\"data\": ",
                         root, "/gone does not exist"));
  EXPECT_EQ(Check("command: x\ncode: src\ninputs: {d: {path: src}, f: {type: uri_file, path: "
                  "file}}\n"),
            "");
}

TEST_F(CheckPathsTest, CodeThatIsFetchedIsNotLookedForHere) {
  for (const char* code : {"s3://bucket/train", "git+https://e.org/p.git"}) {
    EXPECT_EQ(Check(absl::StrCat("command: python gone.py\ncode: ", code, "\n")), "") << code;
    EXPECT_THAT(warnings_, ::testing::IsEmpty()) << code;
  }
}

TEST_F(CheckPathsTest, WhatCannotBeReadIsNotCalledAbsent) {
  const std::string loop = (directory_.path() / "loop").string();
  std::filesystem::create_symlink(loop, loop);
  const std::string why = " cannot be read: Too many levels of symbolic links";
  EXPECT_EQ(Check("command: x\ncode: loop/a\ninputs:\n  data:\n    path: loop\n"),
            absl::StrCat("job.yml:2: code: ", loop, "/a", why,
                         "\njob.yml:5: input \"data\": ", loop, why));
  ASSERT_TRUE(
      base::WriteFileAtomic(directory_.path() / "Dockerfile", "FROM python:3.11\nCOPY loop /x/\n")
          .ok());
  EXPECT_EQ(Check("command: x\nenvironment: {build: {path: .}}\n"),
            absl::StrCat("./Dockerfile:2: COPY loop: ", loop, why));
}

TEST_F(CheckPathsTest, NamesWhatADockerfileCopiesAndIsNotThere) {
  const std::string docker = (directory_.path() / "docker").string();
  ASSERT_TRUE(base::MakeDirectories(docker).ok());
  ASSERT_TRUE(base::WriteFileAtomic(docker + "/is.py", "").ok());
  const auto check = [&](absl::string_view image) {
    EXPECT_TRUE(base::WriteFileAtomic(
                    docker + "/Dockerfile",
                    absl::StrCat("FROM ", image,
                                 "\nCOPY . /all\nCOPY is.py gone.py /x/\nADD *.csv /x/\n"
                                 "COPY *.py /x/\nADD https://x.org/a /x/\nCOPY ../file /x/\n"
                                 "COPY --from=tools /gone /x/\nCOPY $UNKNOWN /x/\n"))
                    .ok());
    return Check(
        "type: pipeline\njobs:\n"
        "  a: {command: x, environment: {build: {path: docker}}}\n"
        "  b: {command: x, environment: {build: {path: docker}}}\n");
  };
  const std::string faults =
      absl::StrCat("docker/Dockerfile:3: COPY gone.py: ", docker, "/gone.py does not exist\n",
                   "docker/Dockerfile:4: ADD *.csv: ", docker, "/*.csv matches no file\n",
                   "docker/Dockerfile:7: COPY ../file: ", directory_.path().string(),
                   "/file is outside of the build's folder ", docker);
  EXPECT_EQ(check("rocker/r:1"), faults) << "of an image that is built";
  EXPECT_EQ(check("python:3.11"), faults) << "of one whose packages are installed";
}

TEST_F(CheckPathsTest, AnEarlierJobThatIsNotThereIsNamed) {
  Site site = BuiltInSite();
  site.jobs = directory_.path().string();
  const auto check = [&](absl::string_view address) {
    const auto result =
        ReadJobFile(absl::StrCat("command: x\ninputs:\n  d: {path: '", address, "'}"), "job.yml",
                    "/base", site);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? std::string(CheckPaths(result->spec, warnings_).message()) : "";
  };
  for (const char* address : {"azureml://jobs/gone/outputs/model", "runs:/gone",
                              "azureml://jobs/gone/outputs/artifacts"}) {
    EXPECT_EQ(
        check(address),
        "job.yml:3: input \"d\": there is no job \"gone\" here; tutti job list shows those that "
        "there are");
  }
  EXPECT_THAT(check("azureml://jobs/src/outputs/model"), HasSubstr("src/outputs/model does not"));
  EXPECT_EQ(check("azureml://jobs/src/outputs/artifacts"), "");
}

TEST_F(CheckPathsTest, AnEarlierJobsFileIsNamedByItsOutput) {
  Site site = BuiltInSite();
  site.jobs = directory_.path().string();
  const std::string output = site.jobs + "/j/outputs/f";
  std::filesystem::create_directories(output);
  const auto path = [&] {
    const auto result = ReadJobFile(
        "command: x\ninputs:\n  d: {type: uri_file, path: 'azureml://jobs/j/outputs/f'}", "job.yml",
        "/base", site);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->spec.inputs.at("d").path : "";
  };
  EXPECT_EQ(path(), output);
  EXPECT_TRUE(base::WriteFileAtomic(output + "/data.csv", "").ok());
  EXPECT_EQ(path(), output + "/data.csv");
  EXPECT_TRUE(base::WriteFileAtomic(output + "/more.csv", "").ok());
  EXPECT_EQ(path(), output);  // which CheckPaths refuses
}

TEST_F(CheckPathsTest, KnowsWhatIsPutBesideAComponentsCode) {
  const auto check = [&](absl::string_view component) {
    EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / "src/c.yml", component).ok());
    return Check("type: pipeline\njobs: {a: {component: ./src/c.yml}}\n");
  };
  const std::string root = directory_.path().string();
  EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / "run.py", "").ok());
  EXPECT_EQ(check("command: python run.py\nadditional_includes: [../run.py, ../src]\n"), "");
  EXPECT_EQ(check("command: python src/train.py\nadditional_includes: [../src/]\n"), "");
  EXPECT_THAT(check("command: python run.py\ncode: .\nadditional_includes: [../file]\n"),
              HasSubstr("the command runs \"run.py\", which is not in the code"));
  EXPECT_THAT(
      check("command: x\nadditional_includes:\n  - ../gone\n"),
      HasSubstr(absl::StrCat("c.yml:2: additional_includes: ", root, "/gone does not exist")));
  EXPECT_THAT(check("command: x\nadditional_includes: ['https://e.org/x']\n"),
              HasSubstr("c.yml:2: additional_includes: path \"https://e.org/x\" is not on"));
}

TEST_F(CheckPathsTest, TellsOnceWhatSeveralStepsShare) {
  EXPECT_TRUE(
      base::WriteFileAtomic(directory_.path() / "src/c.yml", "command: x\ncode: ./gone\n").ok());
  EXPECT_EQ(
      Check("type: pipeline\njobs: {a: {component: ./src/c.yml}, b: {component: "
            "./src/c.yml}}\n"),
      absl::StrCat("src/c.yml:2: code: ", directory_.path().string(), "/src/gone does not exist"));
}

TEST_F(CheckPathsTest, TellsAFileFromAFolder) {
  EXPECT_THAT(Check("command: x\ninputs: {f: {path: file}}\n"),
              HasSubstr("is a file; its type is uri_file"));
  EXPECT_THAT(Check("command: x\ninputs: {f: {type: uri_file, path: src}}\n"),
              HasSubstr("is a folder; its type is uri_folder"));
}

TEST_F(CheckPathsTest, AScriptThatIsNotInTheCodeIsNamed) {
  EXPECT_EQ(Check("code: src\ncommand: python trian.py --lr 1\n"),
            absl::StrCat("job.yml:2: the command runs \"trian.py\", which is not in the code ",
                         directory_.path().string(), "/src (did you mean \"train.py\"?)"));
  for (const char* command :
       {"pip install -r r.txt && python3 -u x.py", "A=1 bash x.sh > log", "./x.sh",
        "echo 'a > b; c' && python x.py", "echo a >&2; pip install b > /dev/null; python x.py; ",
        "set -e; python x.py; echo done", "set -eo pipefail; python x.py | tee log; ls",
        "python x.py && a | b", "python x.py $(date; pwd) # or; not", "\"python \\\n  x.py\"",
        "python -m pip install a; python x.py"}) {
    EXPECT_THAT(Check(absl::StrCat("code: src\ncommand: ", command, "\n")),
                HasSubstr("which is not in the code"))
        << command;
  }
  EXPECT_THAT(Check("command: python train.py\n"), HasSubstr("the job has no code"));
}

TEST_F(CheckPathsTest, SaysNothingWhereItCannotBeSure) {
  for (const char* command : {"python train.py",
                              "python ./train.py",
                              "python lib/../train.py",
                              "cd lib && python x.py",
                              "curl -O http://e/x.py && python x.py",
                              "python -m mod x.py",
                              "python -c 'x.py'",
                              "python /abs/x.py",
                              "python $SCRIPT.py",
                              "echo 'python x.py'",
                              "torchrun x.py",
                              "cat x.py > y.py; python y.py",
                              "\"echo 'print(1)' > z.py; python z.py\"",
                              "echo a >> z.py && python z.py",
                              "env A=1 ./make.sh; python z.py",
                              "export A=$(./make.sh); python z.py",
                              "pip install a || python z.py",
                              "echo 'x; python z.py y'",
                              "echo \"`./make.sh; python z.py`\"; python z.py",
                              "if true; then python x.py; fi"}) {
    EXPECT_EQ(Check(absl::StrCat("code: src\ncommand: ", command, "\n")), "") << command;
  }
}

TEST_F(CheckPathsTest, AScriptWithoutWhichTheJobMayGoOnIsAWarning) {
  for (const char* command :
       {"python x.py || echo fallback", "python x.py; exit 0", "\"set +e\\npython x.py\\nexit 0\"",
        "python x.py | tee log", "python x.py && a || b", "python x.py & wait",
        "set -e; python x.py && a; b", "set -e; set +e; python x.py; b", "python x.py 'a"}) {
    EXPECT_EQ(Check(absl::StrCat("code: src\ncommand: ", command, "\n")), "") << command;
    ASSERT_EQ(warnings_.size(), 1u) << command;
    EXPECT_THAT(warnings_[0], HasSubstr("job.yml:2: the command runs \"x.py\", which is not in"));
  }
}

TEST_F(CheckPathsTest, CodeMayBeOneFile) {
  EXPECT_EQ(Check("code: src/train.py\ncommand: python train.py\n"), "");
  EXPECT_THAT(Check("code: src/train.py\ncommand: python other.py\n"),
              HasSubstr("which is not in the code"));
}

}  // namespace
}  // namespace tutti::spec
