#include "platform/launch/interruptible.h"

#include <signal.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

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

// The last work of a launcher, which ends when it is cancelled or let go.
class LastWork : public InterruptibleTest {
 protected:
  LastWork() { Answer(true); }
  absl::Status Run(absl::Duration after_stop, bool was_told = false) {
    return interruptible.RunLast(
        [&](const std::atomic<bool>& cancelled) {
          begun_ = true;
          while (!cancelled && !let_go_) std::this_thread::yield();
          return let_go_ ? absl::OkStatus() : absl::CancelledError("not all is there");
        },
        [] {}, base::Deadline::After(base::Patient(absl::Seconds(60))), after_stop, was_told);
  }
  // Runs `act` meanwhile, as the service or the engine would.
  std::thread Beside(std::function<void()> act) {
    return std::thread([this, act = std::move(act)] {
      while (!begun_) std::this_thread::yield();
      act();
    });
  }
  void Answer(bool answers) { static_cast<DeliveryFake&>(*delivery).Answer(answers); }
  void Serve(bool served) { static_cast<DeliveryFake&>(*delivery).Serve(served); }
  static void Tell() { ::kill(::getpid(), SIGTERM); }
  bool AwaitTold(int times) {
    return base::AwaitPatiently(absl::Seconds(20), [&] {
      const std::string lines = events->From(1);
      int told = 0;
      for (size_t at = lines.find("\"told\""); at != std::string::npos;
           at = lines.find("\"told\"", at + 1)) {
        ++told;
      }
      return told >= times;
    });
  }
  std::atomic<bool> begun_ = false, let_go_ = false;
};

TEST_F(LastWork, IsCancelledSomeTimeAfterTheLauncherIsToldToEnd) {
  std::thread other = Beside(Tell);
  const absl::Status status = Run(absl::Milliseconds(20));
  other.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "not all is there");
}

TEST_F(LastWork, GoesOnWhereTheJobIsServedUntilThatIsCanceledToo) {
  Serve(true);
  std::atomic<bool> told_once = false;
  std::thread other = Beside([&] {
    Tell();
    told_once = AwaitTold(1);
    let_go_ = true;
  });
  const absl::Status status = Run(absl::ZeroDuration());
  other.join();
  EXPECT_TRUE(told_once) << "the service is asked";
  EXPECT_TRUE(status.ok()) << status;
  let_go_ = begun_ = false;
  std::thread canceled = Beside([&] {
    Tell();
    EXPECT_TRUE(AwaitTold(2));
    Serve(false);
  });
  EXPECT_TRUE(absl::IsCancelled(Run(absl::ZeroDuration())));
  canceled.join();
}

TEST_F(LastWork, GoesOnUntilTheServiceHasSaidThatNobodyWaitsForIt) {
  Answer(false);
  std::atomic<bool> told = false;
  std::thread other = Beside([&] {
    Tell();
    told = AwaitTold(1);
    let_go_ = true;
  });
  const absl::Status status = Run(absl::ZeroDuration());
  other.join();
  EXPECT_TRUE(told);
  EXPECT_TRUE(status.ok()) << status;
  let_go_ = begun_ = false;
  std::thread answers = Beside([&] { Answer(true); });
  EXPECT_TRUE(absl::IsCancelled(Run(absl::ZeroDuration(), /*was_told=*/true)));
  answers.join();
}

}  // namespace
}  // namespace tutti::launch
