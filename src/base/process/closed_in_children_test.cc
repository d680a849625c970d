#include "base/process/closed_in_children.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/deadline.h"
#include "base/process/child_process.h"

namespace tutti::base {
namespace {

// Whether a child has the file of that descriptor before it calls exec.
bool ChildHas(int fd) {
  struct stat here = {}, there = {};
  EXPECT_EQ(::fstat(fd, &here), 0);
  bool has = false;  // the child has this memory until then
  ChildOptions options;
  options.arguments = {"/bin/true"};
  options.before_exec = [&] {
    has = ::fstat(fd, &there) == 0 && there.st_ino == here.st_ino && there.st_dev == here.st_dev;
    return 0;
  };
  auto child = ChildProcess::Start(options);
  EXPECT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE(!child.ok() || child->Wait(Deadline::After(absl::Seconds(60))).ok());
  return has;
}

UniqueFd OpenSelf() { return UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

TEST(ClosedInChildren, AChildHasItNotBeforeExecEither) {
  UniqueFd other = OpenSelf(), fd = OpenSelf();
  const int number = fd.get();
  ClosedInChildren closed(std::move(fd));
  EXPECT_FALSE(ChildHas(number));
  EXPECT_TRUE(ChildHas(other.get()));
  EXPECT_GE(::fcntl(number, F_GETFD), 0) << "this process has it still";
  ClosedInChildren moved;
  moved = std::move(closed);
  EXPECT_FALSE(ChildHas(number));
}

TEST(ClosedInChildren, ItsNumberMayBeAnothersAfterIt) {
  UniqueFd fd = OpenSelf();
  const int number = fd.get();
  { const ClosedInChildren closed(std::move(fd)); }
  const UniqueFd again = OpenSelf();
  ASSERT_EQ(again.get(), number);
  EXPECT_TRUE(ChildHas(number));
}

}  // namespace
}  // namespace tutti::base
