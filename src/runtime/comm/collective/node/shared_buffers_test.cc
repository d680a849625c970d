// What a rank is told by others is checked before it is believed.
// Covers: runtime/comm/transport/sealed_file.cc.
#include "runtime/comm/collective/node/shared_buffers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

// Two ranks' buffers, in this process.
class SharedBuffersTest : public testing::Test {
 protected:
  void SetUp() override {
    int first[2], second[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, first), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, second), 0);
    buffers_[0] = Make(0, first[0], ::dup(first[1]), ::dup(second[1]));
    buffers_[1] = Make(1, second[0], first[1], second[1]);
  }
  static std::unique_ptr<SharedBuffers> Make(int self, int letters, int to_first, int to_second) {
    std::vector<base::UniqueFd> boxes;
    boxes.emplace_back(to_first);
    boxes.emplace_back(to_second);
    return std::make_unique<SharedBuffers>(self, std::move(boxes), base::UniqueFd(letters));
  }

  std::unique_ptr<SharedBuffers> buffers_[2];
};

const std::byte* At(const std::unique_ptr<SharedBuffer>& buffer, size_t offset) {
  return static_cast<const std::byte*>(buffer->data()) + offset;
}

TEST_F(SharedBuffersTest, APeerReachesTheSameBytes) {
  const auto buffer = *buffers_[0]->Allocate(10000);
  const BufferLocation where = buffers_[0]->Find(At(buffer, 5000), 100);
  EXPECT_NE(where.buffer, 0u);
  EXPECT_NE(where.is_new, 0u);
  static_cast<char*>(buffer->data())[5000] = 'x';
  const auto place = buffers_[1]->Map(0, where, 100);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(**place, std::byte{'x'});
}

TEST_F(SharedBuffersTest, OnlyWhatLiesWhollyInABufferIsFound) {
  const auto buffer = *buffers_[0]->Allocate(10000);
  EXPECT_NE(buffers_[0]->Find(At(buffer, 0), 10000).buffer, 0u);
  EXPECT_EQ(buffers_[0]->Find(At(buffer, 1), 10000).buffer, 0u);
  EXPECT_EQ(buffers_[0]->Find(At(buffer, 0) - 1, 2).buffer, 0u);
  EXPECT_EQ(buffers_[0]->Find(At(buffer, 10001), 0).buffer, 0u);
}

TEST_F(SharedBuffersTest, APlaceOutsideOfTheBufferIsDataLoss) {
  const auto buffer = *buffers_[0]->Allocate(10000);
  BufferLocation where = buffers_[0]->Find(At(buffer, 0), 10000);
  EXPECT_TRUE(absl::IsDataLoss(buffers_[1]->Map(0, where, 10001).status()));
  where.offset = 9999;
  EXPECT_TRUE(absl::IsDataLoss(buffers_[1]->Map(0, where, 2).status()));
  where.offset = ~uint64_t{0};
  EXPECT_TRUE(absl::IsDataLoss(buffers_[1]->Map(0, where, 2).status()));
}

TEST_F(SharedBuffersTest, ABufferThatWasNotAnnouncedIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(buffers_[1]->Map(0, {77, 0, 1}, 1).status()));
}

TEST_F(SharedBuffersTest, OneThatNotAllReachIsPlainMemory) {
  const auto buffer = *buffers_[0]->Allocate(10000);
  const BufferLocation where = buffers_[0]->Find(At(buffer, 0), 1);
  buffers_[0]->SetReached(where, true);
  EXPECT_EQ(buffers_[0]->Find(At(buffer, 0), 1).is_new, 0u);
  buffers_[0]->SetReached(where, false);
  EXPECT_EQ(buffers_[0]->Find(At(buffer, 0), 1).buffer, 0u);
}

TEST_F(SharedBuffersTest, ItsPagesGoWithItAndTheMappingGoesWhenThePeerTidies) {
  auto buffer = *buffers_[0]->Allocate(10000);
  const BufferLocation where = buffers_[0]->Find(At(buffer, 0), 10000);
  static_cast<char*>(buffer->data())[0] = 'x';
  const auto place = buffers_[1]->Map(0, where, 10000);
  ASSERT_TRUE(place.ok());
  buffer.reset();
  EXPECT_EQ(**place, std::byte{0}) << "what a peer still has mapped is no access to freed memory";
  EXPECT_TRUE(absl::IsNotFound(buffers_[1]->Map(0, {99, 0, 1}, 1).status()));  // reads letters
  EXPECT_TRUE(buffers_[1]->Map(0, where, 10000).ok());
  buffers_[1]->Tidy();
  EXPECT_TRUE(absl::IsNotFound(buffers_[1]->Map(0, where, 10000).status()));
}

TEST_F(SharedBuffersTest, FullLetterboxesMakeItPlainMemoryAndNobodyWaits) {
  std::vector<std::unique_ptr<SharedBuffer>> all;
  size_t shared = 0;
  for (int i = 0; i < 2000; ++i) {
    all.push_back(*buffers_[0]->Allocate(1));
    const bool found = buffers_[0]->Find(At(all.back(), 0), 1).buffer != 0;
    shared += found;
    if (!found) break;
  }
  EXPECT_GT(shared, 10u);
  EXPECT_LT(shared, 2000u);
}

TEST(SegmentTest, RefusesAFileThatIsNotSealedOrOfAnotherSize) {
  const base::UniqueFd open(::memfd_create("open", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(Segment::Map(open.get(), 4096).status()));
  const auto sealed = *MakeSealedFile("sealed", 4096);
  EXPECT_TRUE(absl::IsInvalidArgument(Segment::Map(sealed.get(), 8192).status()));
  EXPECT_TRUE(Segment::Map(sealed.get(), 4096).ok());
  EXPECT_NE(::ftruncate(sealed.get(), 0), 0);
}

}  // namespace
}  // namespace tutti::comm
