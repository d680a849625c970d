#include "runtime/data/source/shard_bytes.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

class ShardBytesTest : public testing::Test {
 protected:
  absl::StatusOr<ShardBytes> Open(const std::string& name, const std::string& content,
                                  size_t max_unpacked = kMaxUnpackedShard) {
    const auto path = directory_.path() / name;
    EXPECT_TRUE(base::WriteFileAtomic(path, content).ok());
    return ShardBytes::Open(path, max_unpacked);
  }
  base::TemporaryDirectory directory_;
};

TEST_F(ShardBytesTest, APlainFileIsItsBytes) {
  EXPECT_EQ(Open("a.tar", "hello")->view(), "hello");
  EXPECT_EQ(Open("empty.tar", "")->view(), "");
  Open("a.tar", "hello")->WillNeed(1, 3);
}

TEST_F(ShardBytesTest, ACompressedFileIsUnpacked) {
  std::string bytes;
  for (unsigned i = 0; i < 100000; ++i) bytes += static_cast<char>(i * i >> 3);
  EXPECT_EQ(Open("a.tar.zst", Compress(bytes))->view(), bytes);
  EXPECT_EQ(Open("frames.tar.zst", Compress(bytes) + Compress("more"))->view(), bytes + "more");
  EXPECT_EQ(Open("empty.tar.zst", Compress(""))->view(), "");
}

TEST_F(ShardBytesTest, GzipsMembersFollowEachOther) {
  const std::string gzip = Deflate("hello", Deflated::kGzip);
  for (const char* name : {"a.tar.gz", "a.tgz"}) {
    EXPECT_EQ(Open(name, gzip)->view(), "hello");
    EXPECT_EQ(Open(name, gzip + Deflate(" you", Deflated::kGzip))->view(), "hello you");
    EXPECT_EQ(Open(name, gzip.substr(0, gzip.size() - 1)).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(Open("a.tgz", Deflate(std::string(1 << 20, 'x'), Deflated::kGzip), 1 << 19).status(),
            absl::ResourceExhaustedError(
                "unpacks to more than 524288 bytes, the most of a compressed shard: unpack it "
                "(gunzip, unzstd)"));
}

TEST_F(ShardBytesTest, RefusesToUnpackMoreThanAllowed) {
  const std::string bomb = Compress(std::string(1 << 24, '\0'));
  ASSERT_LT(bomb.size(), 4096u);
  EXPECT_EQ(Open("bomb.tar.zst", bomb, 1 << 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Open("bomb.tar.zst", bomb, 1 << 24)->view().size(), size_t{1} << 24);
  EXPECT_EQ(Open("bomb.tar.zst", bomb, (1 << 24) - 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ShardBytesTest, AFolderOrAMissingFileIsAnError) {
  EXPECT_EQ(ShardBytes::Open("/nowhere").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ShardBytes::Open(directory_.path()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti::data
