#include "base/threads/at_once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"

namespace tutti::base {
namespace {

TEST(AtOnce, DoesEachOnce) {
  for (const size_t most : {1, 3, 100}) {
    std::vector<std::atomic<int>> done(10);
    ForEachAtOnce(done.size(), most, [&](size_t i) { ++done[i]; });
    for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1) << most;
  }
  ForEachAtOnce(0, 3, [](size_t) { FAIL(); });
}

TEST(AtOnce, DoesAsManyAtATimeAsItMay) {
  absl::Mutex mutex;
  int begun = 0;
  const auto all = [&] { return begun == 3; };
  ForEachAtOnce(3, 3, [&](size_t) {
    absl::MutexLock lock(&mutex);
    ++begun;
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), Patient(absl::Seconds(20))));
  });
}

TEST(AtOnce, OneIsDoneInTheCallersThread) {
  const std::thread::id caller = std::this_thread::get_id();
  ForEachAtOnce(1, 8, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(AtOnce, WithoutThreadsItIsAllDoneByTheCaller) {
  const NoThreads none;
  int done = 0;
  ForEachAtOnce(10, 4, [&](size_t) { ++done; });
  EXPECT_EQ(done, 10);
}

TEST(AtOnce, AnExceptionIsTheCallersOnceTheOthersAreDone) {
  std::atomic<int> done = 0;
  const auto all = [&] {
    ForEachAtOnce(10, 4, [&](size_t i) {
      if (i % 3 == 0) throw std::runtime_error("no");
      ++done;
    });
  };
  EXPECT_THROW(all(), std::runtime_error);
  EXPECT_EQ(done, 6);
}

}  // namespace
}  // namespace tutti::base
