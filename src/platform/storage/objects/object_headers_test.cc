#include "platform/storage/objects/object_headers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tutti::storage {
namespace {

StoredObject Read(const std::map<std::string, std::string>& headers) {
  StoredObject object{"a", 1};
  TakeHeaders(
      [&](const char* name) {
        const auto found = headers.find(name);
        return found == headers.end() ? "" : found->second;
      },
      object);
  return object;
}

Checksum ChecksumOf(const std::map<std::string, std::string>& headers) {
  return ChecksumIn([&](const char* name) {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  });
}

TEST(ChecksumIn, IsTheStrongestOfTheWholeObject) {
  const Checksum checksum = ChecksumOf({{"x-amz-checksum-crc32", "y/Q5Jg=="},
                                        {"x-amz-checksum-crc64nvme", "rosUhgp5mIg="},
                                        {"x-amz-checksum-type", "FULL_OBJECT"}});
  EXPECT_EQ(TextOf(checksum), "crc64nvme rosUhgp5mIg=");
  EXPECT_EQ(TextOf(ChecksumOf({{"x-amz-checksum-crc32c", "4waSgw=="}})), "crc32c 4waSgw==")
      << "old stores say no type";
}

TEST(ChecksumIn, IsNoneOfPartsNorOfWhatIsNone) {
  EXPECT_EQ(ChecksumOf({}), Checksum{});
  EXPECT_EQ(ChecksumOf({{"x-amz-checksum-crc32", "y/Q5Jg==-3"}}), Checksum{});
  EXPECT_EQ(
      ChecksumOf({{"x-amz-checksum-crc32", "y/Q5Jg=="}, {"x-amz-checksum-type", "COMPOSITE"}}),
      Checksum{});
  std::map<std::string, std::string> parts = {{"etag", "\"abc-3\""},
                                              {"x-amz-checksum-crc32", "y/Q5Jg=="}};
  EXPECT_EQ(ChecksumOf(parts), Checksum{}) << "it does not say of what";
  parts["x-amz-checksum-type"] = "FULL_OBJECT";
  EXPECT_EQ(TextOf(ChecksumOf(parts)), "crc32 y/Q5Jg==");
  EXPECT_EQ(ChecksumOf({{"x-amz-checksum-sha256", "y/Q5Jg=="}}), Checksum{}) << "too short";
  EXPECT_EQ(ChecksumOf({{"x-amz-checksum-sha1", std::string(5000, 'A')}}), Checksum{});
}

constexpr char kMd5[] = "900150983cd24fb0d6963f7d28e17f72";

TEST(TakeHeaders, ReadsThoseOfAzure) {
  const StoredObject object = Read({{"ETag", "\"0x8DC\""},
                                    {"Content-Hash", "900150983CD24FB0D6963F7D28E17F72"},
                                    {"Last-Modified", "2024-01-01T00:00:00Z"}});
  EXPECT_EQ(object.etag, "0x8DC");
  EXPECT_EQ(object.md5, kMd5);
  EXPECT_EQ(object.modified, 1704067200);
}

TEST(TakeHeaders, TakesAnEtagOfS3ForAnMd5IfItCanBeOne) {
  EXPECT_EQ(Read({{"ETag", absl::StrCat("\"", kMd5, "\"")}}).md5, kMd5);
  EXPECT_EQ(Read({{"ETag", absl::StrCat("\"", kMd5, "-3\"")}}).md5, "") << "it went up in parts";
}

TEST(TakeHeaders, TellsVersionsOfGooglesObjectsApart) {
  const StoredObject object = Read({{"etag", "CKih"},
                                    {"generation", "1700000000000001"},
                                    {"md5Hash", "kAFQmDzST7DWlj99KOF/cg=="},
                                    {"updated", "2024-01-01T00:00:00.25+00:00"}});
  EXPECT_EQ(object.etag, "generation 1700000000000001");
  EXPECT_EQ(object.md5, kMd5);
  EXPECT_EQ(object.modified, 1704067200.25);
}

GoogleHashes GoogleHashesOf(const std::map<std::string, std::string>& headers) {
  return GoogleHashesIn([&](const char* name) {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  });
}

TEST(GoogleHashesIn, AreBothOrThatOfAnObjectThatWasComposed) {
  const GoogleHashes both =
      GoogleHashesOf({{"x-goog-hash", "crc32c=n03x6A==, md5=Ojk9c3dhfxgoKVVHYwFbHQ=="}});
  EXPECT_EQ(TextOf(both.checksum), "crc32c n03x6A==");
  EXPECT_EQ(both.md5, "3a393d7377617f182829554763015b1d");
  const GoogleHashes composed = GoogleHashesOf(
      {{"x-goog-hash", "crc32c=n03x6A=="}, {"x-goog-stored-content-encoding", "identity"}});
  EXPECT_EQ(TextOf(composed.checksum), "crc32c n03x6A==");
  EXPECT_EQ(composed.md5, "");
}

TEST(GoogleHashesIn, AreNoneOfWhatIsKeptCompressedNorOfWhatIsNone) {
  for (const std::map<std::string, std::string>& headers :
       std::vector<std::map<std::string, std::string>>{
           {},
           {{"x-goog-hash", "crc32c=n03x6A=="}, {"x-goog-stored-content-encoding", "gzip"}},
           {{"x-goog-hash", "crc32c=n03x, md5=n03x6A=="}},
           {{"x-goog-hash", "crc32c=!,md5=?,sha=AAAA,,="}},
           {{"x-goog-hash", "crc32c=n03x6A==" + std::string(300, ',')}}}) {
    const GoogleHashes none = GoogleHashesOf(headers);
    EXPECT_EQ(none.checksum, Checksum()) << testing::PrintToString(headers);
    EXPECT_EQ(none.md5, "");
  }
}

TEST(TakeHeaders, LeavesOutWhatIsNone) {
  EXPECT_EQ(Read({}), (StoredObject{"a", 1}));
  EXPECT_EQ(Read({{"ETag", std::string(5000, 'e')},
                  {"generation", std::string(5000, '1')},
                  {"Content-Hash", "900"},
                  {"md5Hash", "!"},
                  {"Last-Modified", "yesterday"},
                  {"updated", "9999-99-99T00:00:00Z"}}),
            (StoredObject{"a", 1}));
}

}  // namespace
}  // namespace tutti::storage
