#include "platform/launch/node/wakeup.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

namespace tutti::launch {
namespace {

bool IsAwake(const Wakeup& wakeup) {
  pollfd waiting{wakeup.fd(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(WakeupTest, StaysAwakeFromNotifyToClear) {
  Wakeup wakeup = *Wakeup::Make();
  EXPECT_FALSE(IsAwake(wakeup));
  wakeup.Notify();
  wakeup.Notify();
  EXPECT_TRUE(IsAwake(wakeup));
  wakeup.Clear();
  EXPECT_FALSE(IsAwake(wakeup));
}

TEST(WakeupTest, WithoutADescriptorLeftThereIsNoneAndItSaysSo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto wakeup = Wakeup::Make();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(wakeup.status().message(), "eventfd: Too many open files");
}

}  // namespace
}  // namespace tutti::launch
