#include "platform/file_server/server_state.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::file_server {
namespace {

TEST(ServerStatus, HasWhatIsNotedOfEachServerOfTheList) {
  const base::TemporaryDirectory folder;
  const std::filesystem::path& home = folder.path();
  EXPECT_TRUE(ReadServerStatuses(home)->empty());
  spec::FileServer seen{.name = "seen", .folder = "/data/seen", .port = 2050};
  spec::FileServer added{.name = "added", .folder = "/data/added"};
  seen.clients = added.clients = {"127.0.0.1"};
  ASSERT_TRUE(spec::WriteFileServers(home, {{"seen", seen}, {"added", added}}).ok());
  const std::filesystem::path noted = ServerFolder(home, "seen");
  ASSERT_TRUE(base::MakeDirectories(noted).ok());
  const ServerState state{.state = "failed", .restarts = 2, .error = "its port is in use"};
  const FillState fill{.from = "s3://b/x", .state = "filled", .files = 3, .of_files = 3};
  ASSERT_TRUE(WriteServerState(noted, state).ok());
  ASSERT_TRUE(WriteFillState(noted, fill).ok());
  const auto statuses = ReadServerStatuses(home);
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  ASSERT_EQ(statuses->size(), 2u);
  EXPECT_EQ(statuses->front().server.name, "added");
  EXPECT_EQ(statuses->front().state, ServerState{.state = "waits for the service"});
  EXPECT_FALSE(statuses->front().fill.has_value());
  EXPECT_EQ(statuses->back().server.port, 2050);
  EXPECT_EQ(statuses->back().state, state);
  EXPECT_EQ(statuses->back().fill, fill);
}

TEST(ServerStatus, IsUnknownWhereItCannotBeRead) {
  const base::TemporaryDirectory folder;
  const std::filesystem::path noted = ServerFolder(folder.path(), "seen");
  ASSERT_TRUE(base::MakeDirectories(noted).ok());
  ASSERT_TRUE(base::WriteFileAtomic(noted / "state.json", "{").ok());
  const ServerStatus status = ReadServerStatus(folder.path(), {.name = "seen"});
  EXPECT_EQ(status.state.state, "unknown");
  EXPECT_NE(status.state.error, "");
}

TEST(ServerStatus, OfAListThatIsWrongIsAnError) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(spec::FileServersFile(folder.path()), "[]").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadServerStatuses(folder.path()).status()));
}

}  // namespace
}  // namespace tutti::file_server
