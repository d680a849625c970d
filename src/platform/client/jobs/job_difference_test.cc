#include "platform/client/jobs/job_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "base/file.h"
#include "platform/client/archive/snapshot.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json ReadJob(const std::string& command) {
  return {{"command", command},
          {"command_line", 1},
          {"file_name", "job.yml"},
          {"directory", "/home/me"},
          {"name", ""},
          {"instance_count", 1},
          {"timeout_seconds", nullptr},
          {"inputs", json::object()},
          {"environment_variables", {{"line", "1"}}},
          {"environment",
           {{"name", "host"},
            {"packages", {{{"text", "numpy"}, {"place", "a:1"}}, {{"text", "torch==2.3"}}}}}}};
}

std::vector<std::string> KeysBetween(const json& before, const json& now) {
  std::vector<std::string> arguments;
  return KeysThatDiffer(before.dump(), now.dump(), arguments);
}

std::vector<std::string> ArgumentsBetween(const std::string& before, const std::string& now) {
  std::vector<std::string> arguments;
  EXPECT_THAT(KeysThatDiffer(ReadJob(before).dump(), ReadJob(now).dump(), arguments), IsEmpty());
  return arguments;
}

TEST(JobDifference, NamesTheKeysWhoseValuesAreOthers) {
  json now = ReadJob("train");
  now["instance_count"] = 2;
  now["timeout_seconds"] = 60.5;
  now["environment"]["packages"] = {{{"text", "torch==2.4"}},
                                    {{"text", "numpy"}, {"place", "b:7"}}};
  now["environment_variables"]["line"] = "2";
  now["inputs"]["line"] = {{"type", "uri_folder"}, {"path", "/data"}, {"absent", false}};
  EXPECT_THAT(KeysBetween(ReadJob("train"), now),
              ElementsAre("environment.packages.torch torch==2.3 -> torch==2.4",
                          "environment_variables.line 1 -> 2", "inputs.line.path none -> /data",
                          "inputs.line.type none -> uri_folder", "limits.timeout none -> 60.5",
                          "resources.instance_count 1 -> 2"));
}

TEST(JobDifference, WhereAFileLiesAndWhatItIsCalledIsNone) {
  json now = ReadJob("train");
  now["file_name"] = "elsewhere.yml";
  now["directory"] = "/home/you";
  now["command_line"] = 7;
  now["name"] = "second";
  now["origin"] = {{"git_commit", "abc"}};
  EXPECT_THAT(KeysBetween(ReadJob("train"), now), IsEmpty());
}

TEST(JobDifference, ComparesStepsByTheirNames) {
  const json train = {{"name", "train"}, {"job", ReadJob("train")}};
  json before = ReadJob(""), now = ReadJob("");
  before["steps"] = {train};
  now["steps"] = {{{"name", "prepare"}, {"job", {{"command", "prepare"}}}}, train};
  EXPECT_THAT(KeysBetween(before, now), ElementsAre("steps.prepare.job.command none -> prepare",
                                                    "steps.prepare.name none -> prepare"));
}

TEST(JobDifference, OfOptionsOfACommandEachIsOne) {
  EXPECT_THAT(ArgumentsBetween("python3 train.py --lr 0.1 --name 'a b' --fast",
                               "python3 train.py --name 'a c' --lr=0.01 --shift -1"),
              ElementsAre("--fast given -> none", "--lr 0.1 -> 0.01", "--name a b -> a c",
                          "--shift none -> -1"));
}

TEST(JobDifference, AnotherProgramIsAnotherCommand) {
  EXPECT_THAT(KeysBetween(ReadJob("python3 train.py --lr 1"), ReadJob("python3 test.py --lr 2")),
              ElementsAre("command python3 train.py --lr 1 -> python3 test.py --lr 2"));
}

TEST(JobDifference, ALineNamesTheFirstAndCountsTheOthers) {
  const JobDifference difference{
      .arguments = {"--lr 0.1 -> 0.01"}, .keys = {}, .files = {"a +1 -0", "b +2 -0"}};
  EXPECT_EQ(DifferenceLine(difference, "j", 2),
            "--lr 0.1 -> 0.01; a +1 -0; … and 1 more: tutti job diff j");
  EXPECT_EQ(DifferenceLine(difference, "j", 0), "--lr 0.1 -> 0.01; a +1 -0; b +2 -0");
  EXPECT_EQ(DifferenceLine({}, "j", 2), "nothing");
}

// A service with jobs "one" and "two", whose code is what the test packs.
class JobsThatDiffer : public testing::Test {
 protected:
  JobsThatDiffer() {
    Pack("one", "print(1)\n");
    Pack("two", "print(2)\n");
  }

  void Pack(const std::string& job, const std::string& script) {
    const std::filesystem::path code = folder_.path() / job;
    EXPECT_TRUE(base::MakeDirectories(code).ok());
    EXPECT_TRUE(base::WriteFileAtomic(code / "train.py", script).ok());
    const std::filesystem::path archive = folder_.path() / "archive";
    hashes_[job] = PackCode(code, archive)->hash;
    archives_[hashes_[job]] = *base::ReadFile(archive);
  }

  FakeService::Answer Answer(const http::ClientRequest& request) const {
    for (const auto& [hash, archive] : archives_) {
      if (absl::StrContains(request.target, hash)) return {.chunks = {archive}};
    }
    const std::string job = absl::StrContains(request.target, "/one/") ? "one" : "two";
    if (absl::StrContains(request.target, "/environment.txt")) {
      return {.chunks = {job == "one"
                             ? "# Python 3.11.2\nnumpy==1.0\ntorch==2.3.0\n"
                             : "# Python 3.12.1 (/j/python3)\nnumpy==1.0\ntorch==2.4.0+cpu\n"}};
    }
    if (!absl::StrContains(request.target, "/submission")) return {.status = 404, .chunks = {"{}"}};
    const json submission = {
        {"snapshots", {{"/home/me/" + job, hashes_.at(job)}}},
        {"former", absl::EndsWith(request.target, "/two/submission?former=true") ? json("one")
                                                                                 : json(nullptr)},
        {"job", ReadJob("train")}};
    return {.chunks = {submission.dump()}};
  }

  JobDifference Compare(uint64_t most_bytes = 1 << 20) {
    ServiceClient service(fake_.connect()());
    const auto difference = CompareJobs(service, "one", "two", most_bytes);
    EXPECT_TRUE(difference.ok()) << difference.status();
    return difference.value_or(JobDifference());
  }

  const base::TemporaryDirectory folder_;
  std::map<std::string, std::string> hashes_, archives_;
  FakeService fake_{[this](const http::ClientRequest& request) { return Answer(request); }};
};

TEST_F(JobsThatDiffer, AreComparedByTheirCodeAndWhatWasInstalled) {
  const JobDifference difference = Compare();
  EXPECT_THAT(difference.keys, IsEmpty());
  EXPECT_THAT(difference.files, ElementsAre("train.py +1 -1"));
  EXPECT_THAT(difference.patch, HasSubstr("-print(1)\n+print(2)\n"));
  EXPECT_THAT(difference.packages,
              ElementsAre("Python 3.11.2 -> 3.12.1", "torch 2.3.0 -> 2.4.0+cpu"));
}

TEST_F(JobsThatDiffer, SayWhoseCodeIsNoLongerThere) {
  archives_.erase(hashes_["one"]);
  const JobDifference difference = Compare();
  EXPECT_THAT(difference.notes, ElementsAre("the code differs, and that of one is no longer kept"));
  EXPECT_THAT(difference.files, IsEmpty());
}

TEST_F(JobsThatDiffer, AreNotLookedAtBeyondALimit) {
  EXPECT_THAT(Compare(10).notes, ElementsAre("the code differs, and is too large to look at here"));
}

TEST_F(JobsThatDiffer, KnowTheJobBeforeThemIfThereIsOne) {
  ServiceClient service(fake_.connect()());
  EXPECT_EQ(*FormerJob(service, "two"), "one");
  EXPECT_THAT(FormerJob(service, "one").status().message(), HasSubstr("tutti job diff one OTHER"));
}

}  // namespace
}  // namespace tutti::client
