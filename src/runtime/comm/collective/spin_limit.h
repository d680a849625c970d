// SpinLimit learns how often a wait should look again before it goes to sleep. Looking pays when
// the other side runs at the same time, by a factor of ten and more, and costs dearly when it needs
// this core to run. So it is learned: a success doubles the limit, a vain wait halves it, and now
// and then the most is tried again.
//
// Ranks that share cores for certain let each other run between two looks: such turns cost a
// tenth of a sleep and a wake, where they suffice. Others do so now and then: containers of one
// machine do not know of each other, and a turn that nobody takes costs little.
#pragma once

#include <sched.h>

#include <algorithm>

namespace tutti::comm {

class SpinLimit {
 public:
  // `most` 0: the ranks share cores.
  explicit SpinLimit(int most)
      : yields_(most == 0), most_(yields_ ? kYields : most), limit_(most_) {}

  int limit() const { return waits_ % 64 == 0 ? most_ : limit_; }
  void Succeeded(int after) {
    ++waits_;
    limit_ = std::min(most_, std::max(2 * limit_, 2 * after));
  }
  void Failed() {
    ++waits_;
    limit_ /= 2;
  }
  // Pauses between two looks, of which this was the `look`-th in vain.
  void Pause(int look) const {
    if (yields_ || look % kLooksPerYield == 0) {
      ::sched_yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");  // as long as x86's pause, where "yield" takes no time at all
#endif
  }

 private:
  static constexpr int kYields = 100;
  static constexpr int kLooksPerYield = 16;

  const bool yields_;
  const int most_;
  int limit_;
  unsigned waits_ = 0;
};

}  // namespace tutti::comm
