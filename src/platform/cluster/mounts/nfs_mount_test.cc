#include "platform/cluster/mounts/nfs_mount.h"

#include <gmock/gmock.h>

namespace tutti::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

spec::FileServers OneServer(const std::string& address) {
  spec::FileServer server;
  server.name = "photos";
  server.address = address;
  server.port = 2050;
  return {{"photos", server}};
}

std::string Refused(const std::vector<std::string>& texts) {
  return std::string(ReadMounts(texts, OneServer("10.0.0.5")).status().message());
}

TEST(NfsMount, IsReadFromAnExportAndFromAFileServersName) {
  const auto mounts =
      ReadMounts({"nas.example:/data/a=/mnt/a", "photos=/mnt/photos"}, OneServer("10.0.0.5"));
  ASSERT_TRUE(mounts.ok()) << mounts.status();
  ASSERT_EQ(mounts->size(), 2);
  EXPECT_EQ(SourceOf((*mounts)[0]), "nas.example:/data/a");
  EXPECT_EQ((*mounts)[0].port, 2049);
  EXPECT_EQ((*mounts)[0].path, "/mnt/a");
  EXPECT_EQ(SourceOf((*mounts)[1]), "10.0.0.5:/photos");
  EXPECT_EQ((*mounts)[1].port, 2050);
  EXPECT_TRUE(ReadMounts({"none"}, {}).value().empty());
}

TEST(NfsMount, RefusesWhatIsNoneAndSaysTheForm) {
  for (const char* text :
       {"photos", "a:/b", "a:/b=", "a:/b=mnt", "a:/b=/", "a:/b=/mnt/../etc", "a:/b=/mnt//c",
        "a:/b=/mnt/c d", "a:/$(x)=/mnt", "-a:/b=/mnt", "[fd00::1]:/b=/mnt", ":/b=/mnt"}) {
    EXPECT_THAT(Refused({text}), AllOf(HasSubstr(text), HasSubstr("HOST:/EXPORT=/PATH"))) << text;
  }
  EXPECT_THAT(Refused({"films=/mnt"}), HasSubstr("tutti file-server list"));
  EXPECT_THAT(Refused({"a:/b=/mnt", "a:/c=/mnt/c"}), HasSubstr("/mnt lie in each other"));
}

TEST(NfsMount, RefusesAFileServerThatNodesDoNotReach) {
  for (const char* address : {"127.0.0.1", "0.0.0.0"}) {
    const absl::Status status = ReadMounts({"photos=/mnt"}, OneServer(address)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(address));
  }
}

TEST(NfsMount, IsALineOfFstabThatANodeBootsWithout) {
  const std::string line = FstabLine({"10.0.0.5", 2050, "/photos", "/mnt/photos"});
  EXPECT_EQ(line,
            "10.0.0.5:/photos /mnt/photos nfs4 "
            "port=2050,_netdev,nofail,x-systemd.before=slurmd.service,x-tutti 0 0");
  EXPECT_TRUE(IsFstabLine(line));
  EXPECT_EQ(PathOfFstabLine(line), "/mnt/photos");
  EXPECT_FALSE(IsFstabLine("a:/b /mnt nfs4 x-tutti 0"));
  EXPECT_FALSE(IsFstabLine("a:/b /mnt nfs4 x-tutti,'x' 0 0"));
  EXPECT_FALSE(IsFstabLine("# a:/b /mnt nfs4 x-tutti 0"));
}

}  // namespace
}  // namespace tutti::cluster
