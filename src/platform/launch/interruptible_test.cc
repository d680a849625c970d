#include "platform/launch/interruptible.h"

#include <signal.h>

#include <atomic>
#include <thread>

#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

class InterruptibleTest : public StarterFixture {
 protected:
  // Blocked for this test alone.
  static sigset_t Mask() {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return mask;
  }
  ~InterruptibleTest() override { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }

  const sigset_t before = Mask();
  Signals signals = *Signals::Block();
  Interruptible interruptible{plan, events.get(), delivery.get(), &signals, &news};
};

TEST_F(InterruptibleTest, AwaitLooksAgainAlsoIfNothingTellsOfIt) {
  std::atomic<bool> waits = false, ready = false;
  std::thread other([&] {
    while (!waits) std::this_thread::yield();
    ready = true;
  });
  const base::Deadline soon = Soon();
  const absl::Status awaited = interruptible.Await(
      [&] {
        const bool is_ready = ready;
        waits = true;
        return is_ready;
      },
      base::Deadline::After(absl::Hours(24)));
  other.join();
  EXPECT_TRUE(awaited.ok()) << awaited;
  EXPECT_FALSE(soon.Expired());
}

TEST_F(InterruptibleTest, AwaitEndsAtItsDeadline) {
  const absl::Status awaited =
      interruptible.Await([] { return false; }, base::Deadline::After(absl::Milliseconds(20)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(awaited)) << awaited;
}

}  // namespace
}  // namespace tutti::launch
