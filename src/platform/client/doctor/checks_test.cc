// Covers: machine_checks.cc, encryption_check.cc.
#include "platform/client/doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;
using Outcome = Check::Outcome;

class ChecksTest : public testing::Test {
 protected:
  DoctorSubject Subject(FakeService* service = nullptr) {
    DoctorSubject subject;
    if (service != nullptr) subject.connect = service->connect();
    subject.version = "0.1.0";
    subject.home = folder_.path() / "home";
    subject.program_folder = folder_.path();
    return subject;
  }
  void Program(const std::string& name, const std::string& script) {
    ASSERT_TRUE(
        base::WriteFileAtomic(folder_.path() / name, "#!/bin/sh\n" + script + "\n", 0755).ok());
  }
  base::TemporaryDirectory folder_;
};

TEST_F(ChecksTest, AServiceThatAnswersIsWell) {
  FakeService service([](const http::ClientRequest& request) -> FakeService::Answer {
    if (request.target == "/v1/health") return {.chunks = {R"({"version": "0.1.0"})"}};
    return {.chunks = {R"({"nodes": [{"name": "n1"}, {"name": "n2"}]})"}};
  });
  EXPECT_EQ(CheckService(Subject(&service)).outcome, Outcome::kOk);
  EXPECT_EQ(CheckToken(Subject(&service)).detail, "2 nodes");
  DoctorSubject newer = Subject(&service);
  newer.version = "0.2.0";
  EXPECT_EQ(CheckService(newer).outcome, Outcome::kWarning);
}

TEST_F(ChecksTest, AClusterThatDoesNotTellItsNodesIsSaid) {
  FakeService service([](const http::ClientRequest&) -> FakeService::Answer {
    return {.chunks = {R"({"nodes": [{"name": "n1"}], "warnings": ["hpc is silent"]})"}};
  });
  const Check check = CheckToken(Subject(&service));
  EXPECT_EQ(check.outcome, Outcome::kWarning);
  EXPECT_EQ(check.detail, "1 nodes; hpc is silent");
}

TEST_F(ChecksTest, WhatTheServiceFindsBrokenIsSaid) {
  std::string answer = R"({"problems": []})";
  FakeService service(
      [&](const http::ClientRequest&) -> FakeService::Answer { return {.chunks = {answer}}; });
  EXPECT_EQ(CheckProblems(Subject(&service)).outcome, Outcome::kOk);
  answer = R"({"problems": ["the output of job j cannot be kept"]})";
  const Check check = CheckProblems(Subject(&service));
  EXPECT_EQ(check.outcome, Outcome::kFailed);
  EXPECT_EQ(check.detail, "the output of job j cannot be kept");
}

TEST_F(ChecksTest, AMissingServiceNamesTheRemedy) {
  FakeService service([](const http::ClientRequest&) -> FakeService::Answer {
    return {.then = absl::UnavailableError("refused")};
  });
  const Check check = CheckService(Subject(&service));
  EXPECT_EQ(check.outcome, Outcome::kFailed);
  EXPECT_THAT(check.remedy, HasSubstr("tutti serve"));
}

TEST_F(ChecksTest, AWrongTokenNamesTheRemedy) {
  FakeService service(
      [](const http::ClientRequest&) -> FakeService::Answer { return {.status = 401}; });
  const Check check = CheckToken(Subject(&service));
  EXPECT_EQ(check.outcome, Outcome::kFailed);
  EXPECT_THAT(check.remedy, HasSubstr("service.json"));
}

TEST_F(ChecksTest, TheHomeNeedNotExistButMustBeWritable) {
  EXPECT_EQ(CheckHome(Subject()).outcome, Outcome::kOk);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "home"));
  DoctorSubject nowhere = Subject();
  nowhere.home = "/proc/1/nothing";
  EXPECT_EQ(CheckHome(nowhere).outcome, Outcome::kFailed);
}

TEST_F(ChecksTest, TooLittleDiskOrMemoryFails) {
  DoctorSubject subject = Subject();
  EXPECT_EQ(CheckDisk(subject).outcome, Outcome::kOk);
  EXPECT_EQ(CheckMemory(subject).outcome, Outcome::kOk);
  subject.least_disk_bytes = subject.least_memory_bytes = UINT64_MAX;
  EXPECT_EQ(CheckDisk(subject).outcome, Outcome::kFailed);
  EXPECT_EQ(CheckMemory(subject).outcome, Outcome::kFailed);
}

TEST_F(ChecksTest, WhetherDisksAreEncryptedIsToldAndFailsNothing) {
  DoctorSubject subject = Subject();
  subject.home = "/dev/shm/tutti-not-there";
  EXPECT_EQ(CheckEncryption(subject).detail,
            "state, logs and results, data: in memory, and in the swap space if there is one");
  // Data alone lies elsewhere.
  std::filesystem::create_directories(folder_.path() / "home");
  std::filesystem::create_directory_symlink("/dev/shm", folder_.path() / "home" / "data");
  const Check check = CheckEncryption(Subject());
  EXPECT_EQ(check.outcome, Outcome::kOk);
  EXPECT_THAT(check.detail, HasSubstr("data: in memory"));
}

TEST_F(ChecksTest, FewOpenFilesAreFewNodes) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  DoctorSubject subject = Subject();
  subject.least_open_files = 1;
  EXPECT_EQ(CheckOpenFiles(subject).outcome, Outcome::kOk);
  subject.least_open_files = UINT64_MAX;
  const Check check = CheckOpenFiles(subject);
  if (limit.rlim_max == RLIM_INFINITY) return;
  EXPECT_EQ(check.outcome, Outcome::kWarning);
  EXPECT_THAT(check.detail, HasSubstr(absl::StrCat("about ", limit.rlim_max * 9 / 16, " nodes")));
  EXPECT_THAT(check.remedy, HasSubstr("LimitNOFILE="));
}

TEST_F(ChecksTest, AProgramMustStart) {
  EXPECT_EQ(CheckProgram(Subject(), "tutti-train").outcome, Outcome::kWarning);
  Program("tutti-train", "exit 0");
  EXPECT_EQ(CheckProgram(Subject(), "tutti-train").outcome, Outcome::kOk);
  Program("tutti-train", "echo tutti-train: libgone.so: cannot open >&2; exit 127");
  const Check check = CheckProgram(Subject(), "tutti-train");
  EXPECT_EQ(check.outcome, Outcome::kFailed);
  EXPECT_THAT(check.detail, HasSubstr("exit code 127"));
  EXPECT_THAT(check.detail, HasSubstr("libgone.so: cannot open"));
}

TEST_F(ChecksTest, ThisMachineCanHoldVirtualNodes) {
  EXPECT_EQ(CheckLoopback().outcome, Outcome::kOk);
  EXPECT_NE(CheckCores().outcome, Outcome::kFailed);
  EXPECT_NE(CheckNamespaces().outcome, Outcome::kFailed);
  EXPECT_NE(CheckMasterPort().outcome, Outcome::kFailed);
}

TEST_F(ChecksTest, OneFailureIsEnough) {
  EXPECT_TRUE(NoneFailed({{"a"}, {"b", Outcome::kWarning}}));
  EXPECT_FALSE(NoneFailed({{"a"}, {"b", Outcome::kFailed}}));
  EXPECT_EQ(ChecksAsJson({{"a", Outcome::kWarning, "d", "m"}}),
            R"({"checks":[{"name":"a","outcome":"warning","detail":"d","remedy":"m"}]})");
}

}  // namespace
}  // namespace tutti::client
