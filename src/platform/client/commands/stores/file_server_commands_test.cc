// tests/storage/test_file_server.py serves and fills by the real programs.
#include <gmock/gmock.h>

#include <sstream>

#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/connection_fake.h"
#include "platform/file_server/fill_state.h"
#include "platform/file_server/ganesha.h"
#include "platform/file_server/server_state.h"
#include "spec/data/file_server.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FileServerCommandsTest : public ::testing::Test {
 protected:
  using Command = absl::StatusOr<ExitCode> (*)(Context&, const FileServerOptions&);

  FileServerCommandsTest() {
    spec::FileServer server{.name = "images", .folder = folder_.path() / "data"};
    server.clients = {"127.0.0.1"};
    EXPECT_TRUE(base::MakeDirectories(server.folder).ok());
    EXPECT_TRUE(base::MakeDirectories(home()).ok());
    EXPECT_TRUE(spec::WriteFileServers(home(), {{server.name, server}}).ok());
  }

  fs::path home() const { return folder_.path() / "home"; }
  fs::path noted() const { return file_server::ServerFolder(home(), "images"); }
  absl::Status Do(Command command, FileServerOptions options) {
    out_.str("");
    err_.str("");
    Context context{fake_.connect(), home(), "/programs", "0.1.0", out_, err_, {}, {}};
    return command(context, options).status();
  }

  // Starts a process, and notes it as one that a service has left.
  base::ChildProcess Serving() {
    base::ChildOptions options{.arguments = {"tail", "-f", "/dev/null"}};
    options.environment = base::CurrentEnvironment();
    auto child = base::ChildProcess::Start(options).value();
    file_server::ServerState state{.state = "running", .pid = child.pid()};
    state.start_time = base::ProcessStartTime(child.pid()).value();
    EXPECT_TRUE(base::MakeDirectories(noted()).ok());
    EXPECT_TRUE(file_server::WriteServerState(noted(), state).ok());
    return child;
  }
  static bool Ended(base::ChildProcess& child) {
    return child.Wait(base::Deadline::After(absl::ZeroDuration())).ok();
  }
  absl::Status Create(const std::string& more) {
    const fs::path file = folder_.path() / "server.yml";
    EXPECT_TRUE(base::WriteFileAtomic(file, "name: images\nfolder: data\n" + more).ok());
    return Do(FileServerCreate, {.file = file});
  }

  const base::TemporaryDirectory folder_;
  FakeService fake_{[](const http::ClientRequest&) { return FakeService::Answer{.status = 404}; }};
  std::ostringstream out_, err_;
};

TEST_F(FileServerCommandsTest, NotesAndShowsNoSignature) {
  const absl::Status filled =
      Do(FileServerFill,
         {.name = "images", .from = "azureml://datastores/none/paths/train?sv=1&sig=c2VjcmV0"});
  EXPECT_THAT(std::string(filled.message()), HasSubstr("there is no datastore \"none\""));
  const auto state = file_server::ReadFillState(noted());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->from, "azureml://datastores/none/paths/train");
  EXPECT_EQ(state->state, "cut off");
  const auto text = base::ReadFile(noted() / "fill.json");
  EXPECT_THAT(*text, Not(HasSubstr("c2VjcmV0")));
  ASSERT_TRUE(Do(FileServerShow, {.name = "images"}).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("images: cut off from azureml://datastores/none"),
                                Not(HasSubstr("c2VjcmV0"))));
}

// It outlives the service, and would serve on until there is one again.
TEST_F(FileServerCommandsTest, EndsWhatIsDeletedWhileNoServiceRuns) {
  base::ChildProcess serving = Serving();
  const absl::Status deleted = Do(FileServerDelete, {.name = "images", .yes = true});
  EXPECT_TRUE(deleted.ok()) << deleted;
  EXPECT_TRUE(Ended(serving));
  EXPECT_FALSE(fs::exists(noted()));
  EXPECT_THAT(out_.str(), HasSubstr("is forgotten"));
}

TEST_F(FileServerCommandsTest, EndsWhatIsCreatedOtherwiseWhileNoServiceRuns) {
  const auto variables = base::CurrentEnvironment();
  if (const absl::Status can = file_server::CheckGanesha(variables); !can.ok()) {
    GTEST_SKIP() << can.message();
  }
  base::ChildProcess serving = Serving();
  ASSERT_TRUE(Create("").ok());
  EXPECT_TRUE(Ended(serving)) << "who may mount may be others now";
  EXPECT_TRUE(absl::IsNotFound(file_server::ReadServerState(noted()).status()));
  EXPECT_THAT(err_.str(), HasSubstr("no service runs"));
  // As it is served already, it goes on.
  base::ChildProcess again = Serving();
  const auto kept = spec::ReadFileServers(home()).value();
  ASSERT_TRUE(
      base::WriteFileAtomic(noted() / "ganesha.conf",
                            file_server::GaneshaConfig(kept.at("images"), noted() / "recovery"))
          .ok());
  ASSERT_TRUE(Create("description: of cats\n").ok());
  EXPECT_FALSE(Ended(again));
  ASSERT_TRUE(Create("access: read_write\n").ok());
  EXPECT_TRUE(Ended(again));
}

}  // namespace
}  // namespace tutti::client
