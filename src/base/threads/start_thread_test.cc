#include "base/threads/start_thread.h"

#include <gtest/gtest.h>

#include "base/threads/no_threads_for_tests.h"

namespace tutti::base {
namespace {

TEST(StartThread, DoesTheWorkOrSaysThatThereIsNoRoom) {
  bool done = false;
  {
    const NoThreads none;
    EXPECT_FALSE(StartThread([&] { done = true; }).joinable());
  }
  EXPECT_FALSE(done);
  StartThread([&] { done = true; }).join();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace tutti::base
