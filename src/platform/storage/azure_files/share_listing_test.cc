#include "platform/storage/azure_files/share_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tutti::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Answer(const std::string& entries, const std::string& next) {
  return absl::StrCat("\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>",
                      "<EnumerationResults ShareName=\"s\" DirectoryPath=\"\"><Entries>", entries,
                      "</Entries><NextMarker>", next, "</NextMarker></EnumerationResults>");
}

TEST(SharePageFrom, ReadsFilesFoldersAndTheMarker) {
  const auto page = SharePageFrom(Answer(
      "<File><FileId>1</FileId><Name>a &amp; b.txt</Name><Properties><Content-Length>12"
      "</Content-Length><Last-Modified>Fri, 27 Nov 2026 01:00:00 GMT</Last-Modified></Properties>"
      "</File><Directory><Name>sub</Name><Properties /></Directory>",
      "next+page"));
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->files.size(), 1u);
  EXPECT_EQ(page->files[0].path, "a & b.txt");
  EXPECT_EQ(page->files[0].bytes, 12);
  EXPECT_EQ(page->files[0].modified, 1795741200);
  EXPECT_THAT(page->folders, ElementsAre("sub"));
  EXPECT_EQ(page->next, "next+page");
}

TEST(SharePageFrom, ReadsAFolderWithNothingInIt) {
  const auto page = SharePageFrom(Answer("", ""));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->files, IsEmpty());
  EXPECT_EQ(page->next, "");
}

TEST(SharePageFrom, DecodesANameThatSaysItIsEncodedAndNoOther) {
  const std::string size = "<Properties><Content-Length>1</Content-Length></Properties></File>";
  const auto page =
      SharePageFrom(Answer(absl::StrCat("<File><Name Encoded=\"true\">a%EF%BF%BFb</Name>", size,
                                        "<File><Name>100%25</Name>", size),
                           ""));
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->files.size(), 2u);
  EXPECT_EQ(page->files[0].path,
            "a\xEF\xBF\xBF"
            "b");
  EXPECT_EQ(page->files[1].path, "100%25");
}

TEST(SharePageFrom, SaysThatAnotherAnswerIsNoList) {
  for (const std::string& other :
       {std::string(), std::string("<html><body>Sign in</body></html>"), std::string("{}"),
        Answer("<File><Name>a</Name></File>", ""), Answer("<File></File>", "")}) {
    EXPECT_TRUE(absl::IsUnavailable(SharePageFrom(other).status())) << other;
  }
}

TEST(StoreTimeFrom, ReadsBothFormats) {
  EXPECT_EQ(StoreTimeFrom("Fri, 27 Nov 2026 01:00:00 GMT"), 1795741200);
  EXPECT_EQ(StoreTimeFrom("2026-11-27T01:00:00.5000000Z"), 1795741200.5);
  EXPECT_EQ(StoreTimeFrom("yesterday"), 0);
  EXPECT_EQ(StoreTimeFrom(""), 0);
}

}  // namespace
}  // namespace tutti::storage
