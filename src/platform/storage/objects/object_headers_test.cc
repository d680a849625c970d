#include "platform/storage/objects/object_headers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

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
