#include "platform/storage/objects/checksum.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace tutti::storage {
namespace {

std::string HexOf(ChecksumKind kind, const std::string& content) {
  RunningChecksum running(kind);
  for (const char byte : content) running.Update({&byte, 1});
  const Checksum by_bytes = running.Finish();
  RunningChecksum at_once(kind);
  at_once.Update(content);
  EXPECT_EQ(at_once.Finish(), by_bytes);
  EXPECT_EQ(by_bytes.bytes.size(), BytesOf(kind));
  return absl::BytesToHexString(by_bytes.bytes);
}

// The check values of the catalogue of parametrised CRC algorithms, RFC 3720, and FIPS 180-4's
// examples.
TEST(Checksum, IsThatOfThePublishedExamples) {
  EXPECT_EQ(HexOf(ChecksumKind::kCrc32, "123456789"), "cbf43926");
  EXPECT_EQ(HexOf(ChecksumKind::kCrc32c, "123456789"), "e3069283");
  EXPECT_EQ(HexOf(ChecksumKind::kCrc64Nvme, "123456789"), "ae8b14860a799888");
  EXPECT_EQ(HexOf(ChecksumKind::kSha1, "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(HexOf(ChecksumKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(ChecksumKind::kCrc64Nvme, ""), "0000000000000000");
}

TEST(Checksum, NamesItselfAsS3Does) {
  EXPECT_EQ(TextOf({ChecksumKind::kCrc32, std::string("\xcb\xf4\x39\x26")}), "crc32 y/Q5Jg==");
  EXPECT_STREQ(NameOf(ChecksumKind::kCrc64Nvme), "crc64nvme");
  EXPECT_TRUE(IsStrong(ChecksumKind::kCrc64Nvme));
  EXPECT_FALSE(IsStrong(ChecksumKind::kCrc32c));
  EXPECT_FALSE(IsStrong(ChecksumKind::kNone));
}

}  // namespace
}  // namespace tutti::storage
