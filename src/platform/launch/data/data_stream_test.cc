#include "platform/launch/data/data_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A program that stands for tutti-storage: it notes that it was started and the request that it was
// given, says one line to who connects, and serves until it is killed.
constexpr char kProgram[] = R"(#!/usr/bin/python3
import os, socket, sys
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(folder + "/arguments", "w") as file:
    file.write(" ".join(sys.argv[1:]))
with open(folder + "/request", "w") as file:
    file.write(sys.stdin.read())
listener = socket.socket(socket.AF_UNIX)
path = sys.argv[sys.argv.index("--socket") + 1]
if os.path.exists(path):
    os.unlink(path)
listener.bind(path)
listener.listen()
connections = []
with open(folder + "/pids", "a") as file:
    file.write(f"{os.getpid()}\n")
while True:
    connection, _ = listener.accept()
    connections.append(connection)
    if os.path.exists(folder + "/ends"):
        os.unlink(folder + "/ends")
        sys.exit()
    connection.sendall(open(folder + "/greeting", "rb").read())
)";

class DataStreamTest : public ::testing::Test {
 protected:
  DataStreamTest() {
    Write("program", kProgram);
    ::chmod((folder_.path() / "program").c_str(), 0755);
    Write("greeting", "stream 1 1000\n");
    home_.cache = folder_.path() / "cache";
    request_.operation = storage::Operation::kList;
    request_.place = {spec::StoreKind::kS3, "", "bucket", "", "", "set"};
    request_.credentials.kind = spec::CredentialKind::kAccessKey;
    request_.credentials.access_key_id = "the-id";
    request_.credentials.secret_access_key = "the-secret";
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, text).ok());
  }
  std::string Text(const std::string& name) {
    return base::ReadFile(folder_.path() / name).value_or("");
  }
  absl::StatusOr<std::unique_ptr<DataStream>> Open() {
    return DataStream::Open(folder_.path() / "program", request_, "azureml://datastores/x/paths/y/",
                            home_, name_, cancelled_);
  }

  const base::TemporaryDirectory folder_;
  storage::StorageRequest request_;
  storage::StreamHome home_;
  std::string name_ = "0123";
  std::atomic<bool> cancelled_ = false;
};

TEST_F(DataStreamTest, GivesTheProgramTheRequestWithItsCredentialsAndEndsIt) {
  {
    const auto stream = Open();
    ASSERT_TRUE(stream.ok()) << stream.status();
    EXPECT_THAT(Text("request"), HasSubstr("the-secret"));
  }
  const pid_t pid = std::stoi(Text("pids"));
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(DataStreamTest, TellsTheProgramTheSitesBoundAndWhoSharesTheDisk) {
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(Text("arguments"), AllOf(Not(HasSubstr("--most-bytes")), Not(HasSubstr("--node")),
                                       Not(HasSubstr("--list"))));
  home_.most_bytes = 5000;
  home_.node = "n1";
  home_.nodes = 3;
  home_.list = "/l";
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(Text("arguments"), HasSubstr("--most-bytes 5000 --node n1 --nodes 3 --list /l"));
}

TEST_F(DataStreamTest, JobsOfOneNameShareAProgramAndOthersHaveTheirOwn) {
  const auto programs = [&] {
    const std::string pids = Text("pids");
    return std::count(pids.begin(), pids.end(), '\n');
  };
  const auto first = Open(), second = Open();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(programs(), 1);
  name_ = "4567";
  const auto third = Open();
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(programs(), 2);
}

TEST_F(DataStreamTest, AProgramThatIsKilledIsStartedAnew) {
  home_.list = "/l";
  const auto stream = Open();
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_THAT(Text("arguments"), HasSubstr("--list"));
  const std::string first = Text("pids");
  ASSERT_EQ(::kill(std::stoi(first), SIGKILL), 0);
  const base::Deadline end = base::Deadline::After(base::Patient(absl::Seconds(30)));
  while (Text("pids") == first && !end.Expired()) std::this_thread::yield();
  EXPECT_NE(Text("pids"), first);
  EXPECT_THAT(Text("arguments"), Not(HasSubstr("--list"))) << "what lies there may be another's";
}

TEST_F(DataStreamTest, AProgramThatEndsBeforeItsGreetingIsStartedAnewAtTheStartToo) {
  Write("ends", "once");
  const auto stream = Open();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const std::string pids = Text("pids");
  EXPECT_EQ(std::count(pids.begin(), pids.end(), '\n'), 2) << pids;
}

TEST_F(DataStreamTest, WhatTheStoreSaysIsToldBeforeTheProcessesBegin) {
  Write("greeting", "error credentials bucket \"b\": the store does not take the key\n");
  const auto stream = Open();
  EXPECT_TRUE(absl::IsPermissionDenied(stream.status())) << stream.status();
  EXPECT_THAT(std::string(stream.status().message()), HasSubstr("does not take the key"));
}

TEST_F(DataStreamTest, ACancelledStartEnds) {
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Open().status()));
}

}  // namespace
}  // namespace tutti::launch
