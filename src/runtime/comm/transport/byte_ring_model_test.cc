// The byte ring's own code through all interleavings of its two sides, with store buffers: every
// byte comes, in order, and nobody waits for ever. And the same with a fault in it, which has to be
// found.
#include <gtest/gtest.h>

#include <memory>

#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/transport/byte_ring.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {
namespace {

// With room for one byte neither side ever relies on what it last saw of the other's counter, so
// that what it does next depends on the number of the byte alone (Forget).
constexpr size_t kModelCapacity = 1;
constexpr int kWriter = 0, kReader = 1;

enum class RingFault { kNone, kNoSecondLook, kReleasedBeforeItIsRead };

// Stores that should be sequentially consistent and are not.
template <typename T>
class WeakRingAtomic : public ModelAtomic<T> {
 public:
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    ModelAtomic<T>::store(value, std::memory_order_release);
  }
};

// One byte at a time: what goes round the end is not the model's concern.
template <template <typename> class Atomic>
struct Ring {
  ByteRingStateOf<Atomic> state;
  std::byte data[2 * kModelCapacity] = {};
};

template <template <typename> class Atomic>
void Write(Ring<Atomic>& ring, int bytes, RingFault fault) {
  ByteRingWriterOf<Atomic> writer(&ring.state, ring.data, kModelCapacity);
  for (int next = 1; next <= bytes; ++next) {
    Interleavings::Forget(next);
    const std::byte byte{static_cast<unsigned char>(next)};
    while (*writer.Write({&byte, 1}) == 0) {
      if (fault == RingFault::kNoSecondLook) {
        ring.state.writer_sleeps.store(1);
        Interleavings::AwaitBell();
      } else if (writer.PrepareToSleep()) {
        Interleavings::AwaitBell();
      }
      writer.Wake();
    }
    if (writer.TakeWake()) Interleavings::Ring(kReader);
  }
}

template <template <typename> class Atomic>
void Read(Ring<Atomic>& ring, int bytes, RingFault fault) {
  ByteRingReaderOf<Atomic> reader(&ring.state, ring.data, kModelCapacity);
  for (int next = 1; next <= bytes; ++next) {
    Interleavings::Forget(next);
    auto come = *reader.Readable(1);
    while (come.empty()) {
      if (reader.PrepareToSleep(1)) Interleavings::AwaitBell();
      reader.Wake();
      come = *reader.Readable(1);
    }
    if (fault == RingFault::kReleasedBeforeItIsRead) {
      reader.Release(1);
      if (reader.TakeWake()) Interleavings::Ring(kWriter);
    }
    if (come[0] != std::byte{static_cast<unsigned char>(next)}) Interleavings::Fail("wrong byte");
    if (fault == RingFault::kReleasedBeforeItIsRead) continue;
    reader.Release(1);
    if (reader.TakeWake()) Interleavings::Ring(kWriter);
  }
}

template <template <typename> class Atomic = ModelAtomic>
Interleavings::Result ExploreRing(int bytes, RingFault fault = RingFault::kNone) {
  std::unique_ptr<Ring<Atomic>> ring;
  return Interleavings::Explore(
      2,
      [&] {
        ring = std::make_unique<Ring<Atomic>>();
        Interleavings::Keep(ring->data, sizeof(ring->data));
      },
      [&](int side) {
        if (side == kWriter) Write(*ring, bytes, fault);
        if (side == kReader) Read(*ring, bytes, fault);
      });
}

// Five times round.
TEST(ByteRingModelTest, EveryByteComesAndNoWakeIsLost) {
  const auto result = ExploreRing(5);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.states, 1000u);
}

TEST(ByteRingModelTest, FindsTheByteThatIsWrittenOverWhenItIsReleasedTooEarly) {
  EXPECT_EQ(ExploreRing(5, RingFault::kReleasedBeforeItIsRead).failure, "wrong byte");
}

TEST(ByteRingModelTest, FindsTheLostWakeWithoutASecondLook) {
  EXPECT_EQ(ExploreRing(5, RingFault::kNoSecondLook).failure, "nobody can go on");
}

TEST(ByteRingModelTest, FindsTheLostWakeWhenStoresAreNotSequentiallyConsistent) {
  EXPECT_EQ(ExploreRing<WeakRingAtomic>(4).failure, "nobody can go on");
}

}  // namespace
}  // namespace tutti::comm

#endif
