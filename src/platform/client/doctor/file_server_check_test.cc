#include <gmock/gmock.h>

#include "base/file.h"
#include "platform/client/doctor/checks.h"
#include "platform/file_server/server_state.h"
#include "spec/data/file_server.h"

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class FileServerCheckTest : public ::testing::Test {
 protected:
  FileServerCheckTest() {
    subject_.home = home_.path();
    subject_.variables = {{"PATH", "/nowhere"}};
  }
  void Define(const std::string& name) {
    servers_[name] = {.name = name, .folder = "/d"};
    servers_[name].clients = {"127.0.0.1"};
    EXPECT_TRUE(spec::WriteFileServers(home_.path(), servers_).ok());
  }
  void Note(const std::string& name, const file_server::ServerState& state) {
    const auto folder = file_server::ServerFolder(home_.path(), name);
    EXPECT_TRUE(base::MakeDirectories(folder).ok());
    EXPECT_TRUE(file_server::WriteServerState(folder, state).ok());
  }

  const base::TemporaryDirectory home_;
  DoctorSubject subject_;
  spec::FileServers servers_;
};

TEST_F(FileServerCheckTest, WithoutOneNothingIsLacking) {
  const Check check = CheckFileServers(subject_);
  EXPECT_EQ(check.outcome, Check::Outcome::kOk);
  EXPECT_THAT(check.detail, AllOf(StartsWith("none"), HasSubstr("apt-get install nfs-ganesha")));
}

TEST_F(FileServerCheckTest, TellsWhichIsNotServedAndWhy) {
  Define("images");
  Note("images", {.state = "running"});
  EXPECT_EQ(CheckFileServers(subject_).outcome, Check::Outcome::kOk);
  Define("masks");
  Define("texts");
  Note("masks", {.state = "failed", .error = "the port is taken"});
  const Check check = CheckFileServers(subject_);
  EXPECT_EQ(check.outcome, Check::Outcome::kWarning);
  EXPECT_EQ(check.detail, "masks: the port is taken; texts is not served");
  EXPECT_THAT(check.remedy, HasSubstr("nfs-ganesha"));
}

TEST_F(FileServerCheckTest, AListThatCannotBeReadIsNamed) {
  ASSERT_TRUE(base::WriteFileAtomic(spec::FileServersFile(home_.path()), "{").ok());
  const Check check = CheckFileServers(subject_);
  EXPECT_EQ(check.outcome, Check::Outcome::kWarning);
  EXPECT_THAT(check.remedy, HasSubstr("file-servers.json"));
}

}  // namespace
}  // namespace tutti::client
