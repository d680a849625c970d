#include "platform/launch/world_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti::launch {
namespace {

TEST(WorldCheck, KnowsOpenMpisLibrary) {
  EXPECT_EQ(
      OpenMpiIn("7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n"
                "7f02-7f03 r-xp 00000000 08:01 8                  /opt/ompi/libmpi.so.40.30.4\n"),
      "/opt/ompi/libmpi.so.40.30.4");
  EXPECT_EQ(OpenMpiIn("7f02-7f03 r-xp 00000000 08:01 8 /opt/mpich/libmpi.so.12\n"), "");
  EXPECT_EQ(OpenMpiIn(""), "");
}

TEST(WorldCheck, WhomAnMpirunOfTheJobHasStartedIsPartOfItsWorld) {
  EXPECT_TRUE(HasWorld(absl::string_view("PATH=/bin\0PMIX_NAMESPACE=prterun-1\0", 36)));
  EXPECT_FALSE(HasWorld(absl::string_view("PATH=/bin\0NO_PMIX_NAMESPACE=1\0", 31)));
  EXPECT_FALSE(HasWorld(""));
}

TEST(WorldCheck, LooksAtTheProcessItself) { EXPECT_EQ(OpenMpiLoadedBelow(::getpid()), ""); }

}  // namespace
}  // namespace tutti::launch
