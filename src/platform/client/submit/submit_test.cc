// Covers: user_job.cc.
#include "platform/client/submit/submit.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"
#include "platform/client/submit/user_job.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kJob[] = "command: python3 train.py\ncode: ./src\nenvironment: host\n";

class SubmitTest : public ::testing::Test {
 protected:
  SubmitTest() {
    Write("src/train.py", "print(1)\n");
    Write("job.yml", kJob);
  }
  void Write(const std::string& name, const std::string& text) {
    const auto file = folder_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  }
  JobFile File(const std::string& name = "job.yml") const {
    return {.path = (folder_.path() / name).string()};
  }
  absl::StatusOr<std::string> Submit(const JobFile& file) {
    return SubmitJob(fake_.connect(), folder_.path() / "home", file, remarks_);
  }
  // Returns the faults of two links in src, a and b.
  std::string AllOfCode(const std::string& file) const {
    std::string faults;
    for (const char* link : {"a", "b"}) {
      const auto path = std::filesystem::canonical(folder_.path() / "src") / link;
      absl::StrAppend(&faults, faults.empty() ? "" : "\n", file, ":2: ", path.string(),
                      " is a link to /etc/passwd, outside of the code folder: copy what it points "
                      "to, or leave it out in .amlignore");
    }
    return faults;
  }
  std::string FaultsOf(const JobFile& file) {
    const auto created = Submit(file);
    EXPECT_TRUE(absl::IsInvalidArgument(created.status())) << created.status();
    return std::string(created.status().message());
  }

  FakeService::Answer Handle(const http::ClientRequest& request) {
    if (request.method == "HEAD") return {.status = knows_code_ ? 200 : head_status_};
    if (request.target == "/v1/job-checks") return check_;
    if (request.target == "/v1/jobs") {
      body_ = json::parse(request.body);
      return {.chunks = {R"({"id": "brave_ant", "warnings": ["node n2 is full"]})"}};
    }
    return {.chunks = {"{}"}};
  }

  const base::TemporaryDirectory folder_;
  bool knows_code_ = false;
  int head_status_ = 404;
  FakeService::Answer check_ = {.chunks = {R"({"warnings": ["node n2 is full"]})"}};
  json body_;  // of the job that was created
  FakeService fake_{[this](const http::ClientRequest& request) { return Handle(request); }};
  std::ostringstream remarks_;
};

TEST_F(SubmitTest, AnErrorBeforeTheCodeIsSentStandsOnALineOfItsOwn) {
  head_status_ = 503;
  EXPECT_FALSE(Submit(File()).ok());
  EXPECT_EQ(remarks_.str(), "");
}

TEST_F(SubmitTest, SendsTheCodeAndThenTheJobThatNamesIt) {
  const auto created = Submit(File());
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_THAT(*created, HasSubstr("brave_ant"));
  EXPECT_THAT(fake_.requests(),
              ElementsAre(StartsWith("HEAD /v1/snapshots/sha256:"),
                          StartsWith("PUT /v1/snapshots/sha256:"), "POST /v1/jobs"));
  EXPECT_EQ(body_["text"], kJob);
  EXPECT_EQ(body_["base_directory"], folder_.path().string());
  EXPECT_THAT(fake_.requests()[1], HasSubstr(body_["snapshot"].get<std::string>()));
  EXPECT_THAT(remarks_.str(), AllOf(HasSubstr("code: 1 file, 9 B; sending "),
                                    HasSubstr("warning: node n2 is full\n")));
}

TEST_F(SubmitTest, CodeThatTheServiceHasIsNotSentAgain) {
  knows_code_ = true;
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_THAT(fake_.requests(), ElementsAre(StartsWith("HEAD "), "POST /v1/jobs"));
  EXPECT_THAT(remarks_.str(), HasSubstr("unchanged since an earlier job"));
}

TEST_F(SubmitTest, AJobWithoutCodeNamesNone) {
  Write("job.yml", "command: hostname\nenvironment: host\n");
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_THAT(fake_.requests(), ElementsAre("POST /v1/jobs"));
  EXPECT_TRUE(body_["snapshot"].is_null());
}

TEST_F(SubmitTest, EachSubmissionHasANonceOfItsOwn) {
  ASSERT_TRUE(Submit(File()).ok());
  const std::string first = body_.at("nonce");
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_EQ(first.size(), 32u);
  EXPECT_NE(body_.at("nonce"), first);
}

TEST_F(SubmitTest, AFileWithFaultsIsNotSent) {
  Write("job.yml", "comand: python3 train.py\ncode: ./none\nenvironment: host\n");
  EXPECT_THAT(FaultsOf(File()),
              AllOf(HasSubstr("job.yml:1: "), HasSubstr("command"), HasSubstr("job.yml:2: ")));
  EXPECT_THAT(fake_.requests(), ElementsAre("POST /v1/job-checks"));
}

TEST_F(SubmitTest, OfAFileThatCannotBeReadTheServiceIsNotAsked) {
  for (const char* text : {"command: x\nna\xffme: y\n", "- a\n", "hello\n", "a: [\n", ""}) {
    Write("job.yml", text);
    EXPECT_THAT(FaultsOf(File()), Not(HasSubstr("\n"))) << text;
  }
  EXPECT_THAT(fake_.requests(), ElementsAre());
}

TEST_F(SubmitTest, WhatTheServiceFindsIsToldBesideWhatIsKnownHere) {
  Write("job.yml", "command: hostname\ncode: ./none\nenvironment: host\n");
  check_ = {.status = 400,
            .chunks = {R"({"error": {"code": "invalid_argument", "message": "job.yml:7: no"}})"}};
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr("job.yml:2: "), HasSubstr("\njob.yml:7: no")));
  const std::string file = File().path;
  const json error = {{"code", "invalid_argument"},
                      {"message", file + ":10: no\n" + file + ":1: no\n" + file + ":9: no"}};
  check_ = {.status = 400, .chunks = {json({{"error", error}}).dump()}};
  EXPECT_THAT(FaultsOf(File()),
              AllOf(StartsWith(file + ":1: no\n" + file + ":2: code: "),
                    ::testing::EndsWith("\n" + file + ":9: no\n" + file + ":10: no")));
  check_ = {.then = absl::UnavailableError("refused")};
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr("job.yml:2: "), Not(HasSubstr("refused"))));
}

TEST_F(SubmitTest, WhatIsWrongWithTheCodeIsToldBesideTheOtherFaults) {
  const std::string file = File().path;
  for (const char* link : {"a", "b"}) {
    std::filesystem::create_symlink("/etc/passwd", folder_.path() / "src" / link);
  }
  const json error = {{"code", "invalid_argument"}, {"message", file + ":4: too few nodes"}};
  check_ = {.status = 400, .chunks = {json({{"error", error}}).dump()}};
  const std::string in_code = AllOfCode(file);
  Write("job.yml", absl::StrCat(kJob, "resources: {instance_count: 9}\n"));
  EXPECT_EQ(FaultsOf(File()), absl::StrCat(in_code, "\n", file, ":4: too few nodes"));
  const Connect connect = fake_.connect();
  const auto checked = CheckJob(&connect, folder_.path() / "home", File());
  EXPECT_EQ(checked.status().message(), FaultsOf(File()));
  Write("job.yml", absl::StrCat(kJob, "resourced: {instance_count: 9}\n"));
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr(in_code), HasSubstr(":4: unknown key"),
                                      HasSubstr(":4: too few nodes")));
}

TEST_F(SubmitTest, AGitAddressThatCannotBeFetchedIsToldBesideTheOtherFaults) {
  Write("job.yml", absl::StrCat("command: hostname\ncode: git+file://", folder_.path().string(),
                                "/none\nenvironment: host\nnosuch: 1\n"));
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr("job.yml:2: code: git cannot fetch HEAD of "),
                                      HasSubstr("job.yml:4: unknown key")));
}

TEST_F(SubmitTest, SecretsThatGoWithTheCodeAreWarnedOf) {
  Write("src/.env", "TOKEN=x\n");
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_THAT(remarks_.str(), HasSubstr("warning: .env is sent with the code"));
}

TEST_F(SubmitTest, WhatStaysHereIsToldWithTheFileThatSaysSo) {
  Write(".git/HEAD", "");
  Write(".gitignore", "data/\n");
  Write("src/data/a", std::string(1'100'000, 'x'));
  Write("src/data/b/c", "x");
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_THAT(remarks_.str(), HasSubstr("\nleft out by ../.gitignore: data/ (2 files, 1.10 MB)\n"));
  Write("src/.gitignore", "*.pt\nhollow/\n");
  std::filesystem::create_directories(folder_.path() / "src/hollow");
  for (const char* name : {"a.pt", "b.pt", "c.pt", "d.pt"}) Write(absl::StrCat("src/", name), "x");
  remarks_.str("");
  ASSERT_TRUE(Submit(File()).ok());
  EXPECT_THAT(
      remarks_.str(),
      HasSubstr("\nleft out by ../.gitignore: data/ (2 files, 1.10 MB); by .gitignore: a.pt "
                "(1 B), b.pt (1 B), c.pt (1 B), d.pt (1 B) and 1 more\n"));
}

TEST_F(SubmitTest, SettingsChangeTheFileThatIsSent) {
  JobFile file = File();
  file.settings = {"resources.instance_count=2"};
  ASSERT_TRUE(Submit(file).ok());
  EXPECT_THAT(body_["text"].get<std::string>(), HasSubstr("instance_count"));
}

TEST_F(SubmitTest, AScriptIsTheJobFileThatItStandsFor) {
  JobFile file = File("src/train.py");
  file.script.save = (folder_.path() / "saved.yml").string();
  const auto created = Submit(file);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(body_["text"], base::ReadFile(file.script.save, 1 << 20).value_or(""));
  EXPECT_EQ(body_["file"], file.script.save);
  EXPECT_THAT(remarks_.str(), HasSubstr("is the same job"));
}

TEST_F(SubmitTest, ARefusalNamesTheScriptAndNotTheFileThatIsNotWritten) {
  JobFile file = File("src/train.py");
  file.script.save = (folder_.path() / "saved.yml").string();
  file.settings = {"nonsense=1"};
  const std::string faults = FaultsOf(file);
  EXPECT_THAT(faults, AllOf(HasSubstr("job of "), HasSubstr("train.py:"), HasSubstr("nonsense")));
  EXPECT_THAT(faults, Not(HasSubstr("saved.yml")));
  EXPECT_THAT(remarks_.str(), HasSubstr("saved.yml is not written"));
}

TEST_F(SubmitTest, AWarningBeforeARefusalNamesTheScriptToo) {
  JobFile file = File("src/train.py");
  file.script.save = (folder_.path() / "saved.yml").string();
  file.settings = {"properties.a=1", "inputs.d.type=uri_folder", "inputs.d.path=./none"};
  EXPECT_THAT(FaultsOf(file), HasSubstr("none does not exist"));
  EXPECT_THAT(remarks_.str(),
              ContainsRegex("warning: job of [^\n]*train.py:[0-9]+: \"properties\" has no effect"));
}

TEST_F(SubmitTest, AScriptsOptionsSayNothingToAJobFile) {
  JobFile file = File();
  file.script.nodes = 2;
  EXPECT_THAT(FaultsOf(file),
              AllOf(HasSubstr("--nodes is for scripts"), HasSubstr("--set resources")));
  EXPECT_THAT(FaultsOf(File("none.yml")), StartsWith("cannot read the job file or script: open "));
  EXPECT_THAT(fake_.requests(), IsEmpty());
}

TEST_F(SubmitTest, ACheckKeepsNothing) {
  const Connect connect = fake_.connect();
  const auto checked = CheckJob(&connect, folder_.path() / "home", File());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->job.command, "python3 train.py");
  EXPECT_THAT(checked->warnings, ElementsAre("node n2 is full"));
  EXPECT_THAT(fake_.requests(), ElementsAre("POST /v1/job-checks"));
}

TEST_F(SubmitTest, ACheckWithoutAServiceLooksAtFileAndCode) {
  EXPECT_TRUE(CheckJob(nullptr, folder_.path() / "home", File()).ok());
  Write("job.yml", "command: hostname\ncode: ./none\nenvironment: host\n");
  const auto checked = CheckJob(nullptr, folder_.path() / "home", File());
  EXPECT_THAT(std::string(checked.status().message()), HasSubstr("job.yml:2: "));
}

// Stands for tutti-storage: answers a list with what lies beside it, and fetches a train.py.
constexpr char kStorage[] = R"sh(#!/bin/sh
request=$(cat)
case $request in
*'"browse"'*) cat "$0.answer" ;;
*) echo fetched >>"$0.fetches"
   folder=$(printf %s "$request" | sed 's/.*"folder":"\([^"]*\)".*/\1/')
   echo 'print(2)' >"$folder/train.py"
   echo '{"done": {"objects": 1, "bytes": 9}}' ;;
esac
)sh";
constexpr char kOneFile[] = R"({"object": {"path": "train.py", "bytes": 9, "etag": ""}}
{"done": {"objects": 1, "bytes": 9}}
)";
constexpr char kInStore[] = "command: python3 train.py\ncode: s3://box/train\nenvironment: host\n";

class CodeInStoreSubmitTest : public SubmitTest {
 protected:
  CodeInStoreSubmitTest() {
    Write("storage", kStorage);
    Write("storage.answer", kOneFile);
    const std::string program = folder_.path() / "storage";
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    Write("job.yml", kInStore);
  }
  ~CodeInStoreSubmitTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }
  bool HasFetched() const { return std::filesystem::exists(folder_.path() / "storage.fetches"); }
};

TEST_F(CodeInStoreSubmitTest, IsFetchedAndSentAsAnyCode) {
  const auto created = Submit(File());
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(HasFetched());
  EXPECT_THAT(fake_.requests(),
              ElementsAre(StartsWith("HEAD /v1/snapshots/sha256:"),
                          StartsWith("PUT /v1/snapshots/sha256:"), "POST /v1/jobs"));
  EXPECT_EQ(body_["text"], kInStore);
  EXPECT_THAT(fake_.requests()[1], HasSubstr(body_["snapshot"].get<std::string>()));
  EXPECT_THAT(remarks_.str(), AllOf(StartsWith("code: fetching s3://box/train\n"),
                                    HasSubstr("code: 1 file, 9 B; sending ")));
}

TEST_F(CodeInStoreSubmitTest, WhatIsNotInItIsToldByItsAddress) {
  Write("job.yml", "command: python3 nosuch.py\ncode: s3://box/train\nenvironment: host\n");
  EXPECT_THAT(FaultsOf(File()),
              AllOf(HasSubstr("job.yml:1: the command runs \"nosuch.py\", which is not in the code "
                              "s3://box/train"),
                    Not(HasSubstr("tutti-code"))));
}

TEST_F(CodeInStoreSubmitTest, WhatTheStoreRefusesIsAFaultWithItsPlace) {
  Write("storage.answer", "{\"error\": {\"kind\": \"credentials\", \"message\": \"refused\"}}\n");
  const auto place = File().path + ":2: code: s3://box/train: ";
  EXPECT_THAT(FaultsOf(File()),
              AllOf(StartsWith(place), HasSubstr("refused"), Not(HasSubstr("\n"))));
  Write("storage.answer",
        "{\"error\": {\"kind\": \"not_found\", \"message\": \"nothing is there\"}}\n");
  EXPECT_THAT(FaultsOf(File()),
              AllOf(StartsWith(place), HasSubstr("nothing is there"), Not(HasSubstr("\n"))));
  Write("storage.answer", "{\"done\": {\"objects\": 0, \"bytes\": 0}}\n");
  EXPECT_EQ(FaultsOf(File()), place + "no file is there");
  Write("job.yml",
        "command: hostname\ncode: azureml://datastores/none/paths/a\nenvironment: host\n");
  EXPECT_THAT(FaultsOf(File()), HasSubstr(":2: code: there is no datastore \"none\""));
  EXPECT_FALSE(HasFetched());
}

TEST_F(CodeInStoreSubmitTest, OfAJobWithFaultsItIsNotFetched) {
  Write("job.yml", std::string(kInStore) + "nosuch: 1\n");
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr("job.yml:4: unknown key"), Not(HasSubstr("\n"))));
  Write("job.yml", "command: hostname\ncode: s3://box/a*\nenvironment: host\n");
  EXPECT_THAT(FaultsOf(File()), AllOf(HasSubstr("job.yml:2: code: \"s3://box/a*\" has a \"*\""),
                                      Not(HasSubstr("\n"))));
  EXPECT_FALSE(HasFetched());
}

TEST_F(CodeInStoreSubmitTest, ACheckFetchesItOnlyWithAService) {
  const auto offline = CheckJob(nullptr, folder_.path() / "home", File());
  ASSERT_TRUE(offline.ok()) << offline.status();
  EXPECT_THAT(offline->warnings, ElementsAre(HasSubstr("job.yml:2: code: s3://box/train was not "
                                                       "looked at")));
  EXPECT_FALSE(HasFetched());
  const Connect connect = fake_.connect();
  const auto checked = CheckJob(&connect, folder_.path() / "home", File());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_TRUE(HasFetched());
  EXPECT_THAT(fake_.requests(), ElementsAre("POST /v1/job-checks"));
}

}  // namespace
}  // namespace tutti::client
