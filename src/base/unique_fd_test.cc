#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace tutti::base {
namespace {

int NewFd() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFdTest, ClosesWhatItOwnsAtItsEnd) {
  const int fd = NewFd();
  {
    const UniqueFd owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
  EXPECT_FALSE(UniqueFd().valid());
}

TEST(UniqueFdTest, AMovePassesTheDescriptorOn) {
  const int fd = NewFd();
  UniqueFd first(fd);
  const UniqueFd second = std::move(first);
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), fd);
  EXPECT_TRUE(IsOpen(fd));
}

TEST(UniqueFdTest, AnAssignmentClosesWhatWasOwnedBefore) {
  const int old_fd = NewFd(), new_fd = NewFd();
  UniqueFd owner(old_fd);
  owner = UniqueFd(new_fd);
  EXPECT_FALSE(IsOpen(old_fd));
  EXPECT_TRUE(IsOpen(new_fd));
  UniqueFd& same = owner;
  owner = std::move(same);
  EXPECT_EQ(owner.get(), new_fd);
  EXPECT_TRUE(IsOpen(new_fd));
}

TEST(UniqueFdTest, WhatIsReleasedStaysOpen) {
  UniqueFd owner(NewFd());
  const int fd = owner.release();
  EXPECT_FALSE(owner.valid());
  owner.reset();
  EXPECT_TRUE(IsOpen(fd));
  ::close(fd);
}

}  // namespace
}  // namespace tutti::base
