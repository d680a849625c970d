// The byte ring's own code through all that its two sides can do under C++'s memory model: every
// byte comes, in order, nobody waits for ever, and no byte is read and written at once. And the
// same with a fault in it, which has to be found, be it only a memory order that is weaker.
// Covers: byte_ring.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/comm/model/interleavings.h"
#include "runtime/comm/model/weakened_test_support.h"
#include "runtime/comm/transport/byte_ring.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

namespace tutti::comm {

template <>
struct RingBytes<ModelAtomic> {
  static void Copy(std::byte* to, std::span<const std::byte> from) {
    Interleavings::Write(to);
    std::memcpy(to, from.data(), from.size());
  }
};

namespace {

constexpr size_t kMostCapacity = 2;
constexpr int kWriter = 0, kReader = 1;

enum class RingFault { kNone, kNoSecondLook, kReleasedBeforeItIsRead };

struct RingCase {
  size_t capacity;
  int bytes;
  RingFault fault = RingFault::kNone;
};

// One byte at a time: what goes round the end is not the model's concern.
struct Ring {
  explicit Ring(const RingCase& ring_case) : what(ring_case) {
    for (size_t at = 0; at < what.capacity; ++at) Interleavings::Share(&data[at], 1);
  }
  const RingCase what;
  ByteRingStateOf<ModelAtomic> state;
  std::byte data[2 * kMostCapacity] = {};
};

// With room for one byte neither side ever relies on what it last saw of the other's counter, so
// that what it does next depends on the number of the byte alone.
void ForgetBefore(const Ring& ring, int next) {
  if (ring.what.capacity == 1) Interleavings::Forget(next);
}

void WriteRing(Ring& ring) {
  ByteRingWriterOf<ModelAtomic> writer(&ring.state, ring.data, ring.what.capacity);
  for (int next = 1; next <= ring.what.bytes; ++next) {
    ForgetBefore(ring, next);
    const std::byte byte{static_cast<unsigned char>(next)};
    while (*writer.Write({&byte, 1}) == 0) {
      if (ring.what.fault == RingFault::kNoSecondLook) {
        ring.state.writer_sleeps.store(1);
        Interleavings::AwaitNotification();
      } else if (writer.PrepareToSleep()) {
        Interleavings::AwaitNotification();
      }
      writer.Wake();
    }
    if (writer.TakeWake()) Interleavings::Notify(kReader);
  }
}

void Look(std::span<const std::byte> come, int next) {
  Interleavings::Read(come.data());
  if (come[0] != std::byte{static_cast<unsigned char>(next)}) Interleavings::Fail("wrong byte");
}

void ReadRing(Ring& ring) {
  ByteRingReaderOf<ModelAtomic> reader(&ring.state, ring.data, ring.what.capacity);
  const bool early = ring.what.fault == RingFault::kReleasedBeforeItIsRead;
  for (int next = 1; next <= ring.what.bytes; ++next) {
    ForgetBefore(ring, next);
    auto come = *reader.Readable(1);
    while (come.empty()) {
      if (reader.PrepareToSleep(1)) Interleavings::AwaitNotification();
      reader.Wake();
      come = *reader.Readable(1);
    }
    if (!early) Look(come, next);
    reader.Release(1);
    if (reader.TakeWake()) Interleavings::Notify(kWriter);
    if (early) Look(come, next);
  }
}

Interleavings::Result ExploreRing(const RingCase& ring_case,
                                  const std::optional<WeakenedOrder>& weakened = {}) {
  std::unique_ptr<Ring> ring;
  return Interleavings::Explore(
      2, [&] { ring = std::make_unique<Ring>(ring_case); },
      [&](int side) { side == kWriter ? WriteRing(*ring) : ReadRing(*ring); },
      {.weakened = weakened});
}

TEST(ByteRingModelTest, EveryByteComesAndNoWakeIsLost) {
  for (const RingCase& one : {RingCase{1, 5}, RingCase{2, 3}}) {
    const auto result = ExploreRing(one);
    EXPECT_EQ(result.failure, "");
    PrintCounts(absl::StrCat("byte ring of ", one.capacity, ", ", one.bytes, " bytes"), result);
  }
}

TEST(ByteRingModelTest, NeedsItsMemoryOrders) {
  const auto check = WeakenEach([](const auto& weakened) { return ExploreRing({1, 4}, weakened); });
  EXPECT_THAT(check.not_needed, testing::IsEmpty());
  EXPECT_GT(check.tried, 0u);
}

TEST(ByteRingModelTest, FindsTheByteThatIsWrittenOverWhenItIsReleasedTooEarly) {
  EXPECT_THAT(ExploreRing({1, 5, RingFault::kReleasedBeforeItIsRead}).failure,
              testing::StartsWith("data race"));
}

TEST(ByteRingModelTest, FindsTheLostWakeWithoutASecondLook) {
  EXPECT_EQ(ExploreRing({1, 5, RingFault::kNoSecondLook}).failure, "nobody can go on");
}

}  // namespace
}  // namespace tutti::comm

#endif
