#include "platform/file_server/ganesha.h"

#include <gmock/gmock.h>

namespace tutti::file_server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

spec::FileServer Images() {
  spec::FileServer server{.name = "images", .folder = "/data/images"};
  server.clients = {"10.0.0.0/24", "10.1.0.7"};
  server.address = "10.0.0.5";
  return server;
}

TEST(GaneshaConfig, LetsClientsReadAndNobodyElse) {
  const std::string config = GaneshaConfig(Images(), "/home/recovery");
  EXPECT_THAT(config, AllOf(HasSubstr("Bind_addr = 10.0.0.5;"), HasSubstr("NFS_Port = 2049;"),
                            HasSubstr("Path = \"/data/images\"; Pseudo = \"/images\";"),
                            HasSubstr("Access_Type = None;"),
                            HasSubstr("Clients = 10.0.0.0/24, 10.1.0.7; Access_Type = RO;"),
                            HasSubstr("RecoveryRoot = \"/home/recovery\"")));
  EXPECT_THAT(config, Not(HasSubstr("RW")));
}

TEST(GaneshaConfig, WhoReadsIsNobodyWhateverItSays) {
  const std::string config = GaneshaConfig(Images(), "/r");
  EXPECT_THAT(config, HasSubstr("Squash = All_Squash;"));
  EXPECT_THAT(config, Not(HasSubstr("Root_Squash")));
}

TEST(GaneshaConfig, WhoMayWriteIsNotRoot) {
  spec::FileServer server = Images();
  server.is_writable = true;
  const std::string config = GaneshaConfig(server, "/r");
  EXPECT_THAT(config, AllOf(HasSubstr("Access_Type = RW;"), HasSubstr("Squash = Root_Squash;"),
                            Not(HasSubstr("No_Root_Squash")), Not(HasSubstr("All_Squash"))));
}

// NFS-Ganesha 4.3 writes these lines.
TEST(ReasonInLog, SaysWhyItHasEnded) {
  EXPECT_EQ(ReasonInLog("27/11/2026 01:19:20 : epoch 6b08da98 : h : nfs-ganesha-17[main] "
                        "gsh_dbus_pkginit :DBUS :CRIT :dbus_bus_get failed\n"
                        "27/11/2026 01:19:20 : epoch 6b08da98 : h : nfs-ganesha-17[main] "
                        "Bind_sockets_V6 :DISP :WARN :Cannot bind NFS tcp6 socket, error 98 "
                        "(Address already in use)\n"
                        "27/11/2026 01:19:20 : epoch 6b08da98 : h : nfs-ganesha-17[main] "
                        "Bind_sockets :DISP :FATAL :Error binding to V6 interface. Cannot "
                        "continue.\n"),
            "Cannot bind NFS tcp6 socket, error 98 (Address already in use)");
  EXPECT_EQ(ReasonInLog("x : nfs-ganesha-17[main] main :NFS STARTUP :FATAL :Cannot load FSAL\n"),
            "Cannot load FSAL");
  EXPECT_EQ(ReasonInLog("x : nfs-ganesha-17[main] nfs_start :MAIN :EVENT :NFS EXIT\n"), "");
}

TEST(ServesByLog, IsSoOnceItSaysSo) {
  EXPECT_FALSE(ServesByLog("x : nfs-ganesha-17[main] main :MAIN :EVENT :Starting\n"));
  EXPECT_TRUE(
      ServesByLog("x : nfs-ganesha-17[main] nfs_start :NFS STARTUP :EVENT :             "
                  "NFS SERVER INITIALIZED\n"));
}

TEST(CheckGanesha, SaysHowToGetIt) {
  const absl::Status status = CheckGanesha({{"PATH", "/nowhere"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("apt-get install nfs-ganesha"));
}

}  // namespace
}  // namespace tutti::file_server
