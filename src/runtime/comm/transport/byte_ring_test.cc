#include "runtime/comm/transport/byte_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace tutti::comm {
namespace {

constexpr size_t kCapacity = 4096;

// A ring whose two ends are in this process.
class ByteRingTest : public testing::Test {
 protected:
  void SetUp() override {
    const int file = ::memfd_create("ring", 0);
    ASSERT_EQ(::ftruncate(file, kCapacity), 0);
    data_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * kCapacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (const size_t copy : {size_t{0}, kCapacity}) {
      ASSERT_NE(
          ::mmap(data_ + copy, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0),
          MAP_FAILED);
    }
    ::close(file);
    writer_ = std::make_unique<ByteRingWriter>(state_.get(), data_, kCapacity);
    reader_ = std::make_unique<ByteRingReader>(state_.get(), data_, kCapacity);
  }
  void TearDown() override { ::munmap(data_, 2 * kCapacity); }

  size_t Write(size_t bytes) {
    return writer_->Write(std::vector<std::byte>(bytes, std::byte{7})).value();
  }

  std::unique_ptr<ByteRingState> state_ = std::make_unique<ByteRingState>();
  std::byte* data_ = nullptr;
  std::unique_ptr<ByteRingWriter> writer_;
  std::unique_ptr<ByteRingReader> reader_;
};

TEST_F(ByteRingTest, TakesNoMoreThanItsCapacity) {
  EXPECT_EQ(Write(kCapacity - 1), kCapacity - 1);
  EXPECT_EQ(Write(5), 1u);
  EXPECT_EQ(Write(5), 0u);
  EXPECT_EQ(reader_->Readable(1)->size(), kCapacity);
  reader_->Release(3);
  EXPECT_EQ(Write(5), 3u);
}

TEST_F(ByteRingTest, GivesAPieceThatGoesRoundTheEndAsOne) {
  Write(kCapacity - 2);
  ASSERT_TRUE(reader_->Readable(1).ok());
  reader_->Release(kCapacity - 2);
  const char text[] = "around the end";
  ASSERT_EQ(*writer_->Write(std::as_bytes(std::span(text))), sizeof(text));
  EXPECT_EQ(std::memcmp(reader_->Readable(sizeof(text))->data(), text, sizeof(text)), 0);
}

TEST_F(ByteRingTest, ASideSleepsOnlyWhenItHasToAndIsWokenOnce) {
  EXPECT_TRUE(reader_->PrepareToSleep(2));
  Write(1);
  EXPECT_TRUE(writer_->TakeWake());
  EXPECT_FALSE(writer_->TakeWake());
  EXPECT_TRUE(reader_->PrepareToSleep(2)) << "one byte is fewer than two";
  Write(1);
  EXPECT_FALSE(reader_->PrepareToSleep(2));
  EXPECT_FALSE(writer_->PrepareToSleep());
  Write(kCapacity);
  EXPECT_TRUE(writer_->PrepareToSleep());
  ASSERT_TRUE(reader_->Readable(1).ok());
  reader_->Release(1);
  EXPECT_TRUE(reader_->TakeWake());
}

TEST_F(ByteRingTest, CountersThatMakeNoSenseAreAnErrorAndNotAnAccess) {
  const std::vector<std::byte> much(kCapacity + 1);
  for (int again = 0; again < 2; ++again) {
    state_->written = kCapacity + 1;
    EXPECT_TRUE(absl::IsDataLoss(reader_->Readable(1).status()));
    state_->read = 5;  // more than was written
    EXPECT_TRUE(absl::IsDataLoss(writer_->Write(much).status()));
  }
}

// For ThreadSanitizer: every byte comes, in order, with both sides sleeping as often as they can.
// A lost wake would hang here.
TEST_F(ByteRingTest, PassesEveryByteBetweenTwoThreadsThatSleep) {
  constexpr uint32_t kValues = 200000;
  std::counting_semaphore<> wake_reader(0), wake_writer(0);
  std::thread writer([&] {
    std::vector<uint32_t> values(257);
    uint32_t next = 0;
    while (next < kValues) {
      const uint32_t count = std::min<uint32_t>(values.size(), kValues - next);
      for (uint32_t i = 0; i < count; ++i) values[i] = next + i;
      std::span<const std::byte> bytes = std::as_bytes(std::span(values).first(count));
      while (!bytes.empty()) {
        bytes = bytes.subspan(*writer_->Write(bytes));
        if (writer_->TakeWake()) wake_reader.release();
        if (!bytes.empty() && writer_->PrepareToSleep()) wake_writer.acquire();
      }
      next += count;
    }
  });
  uint32_t expected = 0;
  while (expected < kValues) {
    const auto bytes = *reader_->Readable(4);
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      uint32_t value;
      std::memcpy(&value, bytes.data() + i, 4);
      ASSERT_EQ(value, expected++);
    }
    if (bytes.size() >= 4) {
      reader_->Release(bytes.size() / 4 * 4);
      if (reader_->TakeWake()) wake_writer.release();
    } else if (reader_->PrepareToSleep(4)) {
      wake_reader.acquire();
    }
  }
  writer.join();
}

}  // namespace
}  // namespace tutti::comm
