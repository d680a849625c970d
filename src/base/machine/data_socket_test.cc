#include "base/machine/data_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::base {
namespace {

TEST(DataSocket, IsTheSameForWhoAgreesAndShortForAnyAddress) {
  const auto socket = DataSocketOf("s3://bucket/set", "/data");
  ASSERT_TRUE(socket.ok()) << socket.status();
  // As python/tutti/data/stream.py has it.
  EXPECT_EQ(socket->native(),
            absl::StrCat("/tmp/tutti-", ::getuid(), "/bcf8de8654c9121e411e47fe3beb1064.sock"));
  EXPECT_EQ(*socket, *DataSocketOf("s3://bucket/set/", "/data"));
  EXPECT_NE(*socket, *DataSocketOf("s3://bucket/set", "/other"));
  EXPECT_NE(*socket, *DataSocketOf("s3://bucket/other", "/data"));
  const auto of_job = DataSocketOf("s3://bucket/set", "/data", "0123");
  EXPECT_EQ(of_job->filename(), "401d1977af71cd989a12995f88220ec7.sock");
  EXPECT_NE(*of_job, *DataSocketOf("s3://bucket/set", "/data", "4567"));
  const auto longest = DataSocketOf(std::string(4000, 'x'), "/data");
  EXPECT_LT(longest->native().size(), sizeof(sockaddr_un::sun_path));
}

// In /tmp anyone may make it first.
TEST(DataSocket, IsNeverInAFolderThatSomebodyElseHas) {
  if (::getuid() != 0) GTEST_SKIP() << "acting as another user needs root";
  constexpr uid_t kOther = 64399;  // that nobody has
  const std::string folder = absl::StrCat("/tmp/tutti-", kOther);
  ::rmdir(folder.c_str());
  ASSERT_EQ(::mkdir(folder.c_str(), 0777), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setuid(kOther) != 0) ::_exit(2);
    ::_exit(absl::IsFailedPrecondition(DataSocketOf("s3://bucket/set", "/data").status()) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(::rmdir(folder.c_str()), 0);
}

}  // namespace
}  // namespace tutti::base
