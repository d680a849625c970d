#include "platform/storage/transfer/object_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "platform/storage/transfer/attempts.h"

namespace tutti::storage {
namespace {

absl::Status Check(const std::vector<std::string>& paths) {
  std::vector<StoredObject> objects;
  for (const std::string& path : paths) objects.push_back({path});
  return CheckNames(objects);
}

TEST(CheckNames, TakesNamesThatFilesCanHave) {
  EXPECT_TRUE(Check({"a", "b/c", "b/d", "...", "a b", "ä", "b.part", "x/.tutti-objects"}).ok());
  EXPECT_TRUE(Check({}).ok());
}

TEST(CheckNames, RefusesByNameWhatLeadsOutOfTheFolder) {
  for (const std::string path : {"../a", "a/../../b", "/etc/passwd", "a//b", "a/./b", "..", ".", "",
                                 "a/", ".tutti-objects", ".tutti-parts/x"}) {
    const absl::Status status = Check({"fine", path});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << path;
    EXPECT_EQ(ObjectOf(status), path);
  }
  EXPECT_FALSE(Check({std::string("a\0b", 3)}).ok());
  EXPECT_FALSE(Check({std::string(300, 'x')}).ok());
  EXPECT_FALSE(Check({"a", "a"}).ok());
}

TEST(CheckNames, RefusesAFileThatIsAFolderToo) {
  const absl::Status status = Check({"a/b", "a/b/c/d", "a/x"});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(ObjectOf(status), "a/b");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("a/b/c/d"));
}

TEST(CheckNames, NamesAllThatAreRefused) {
  const absl::Status status = Check({"../up", "a//b", "f", "f/1", "fine", std::string(300, 'x')});
  EXPECT_EQ(ObjectOf(status), "../up");
  for (const std::string name : {"\"../up\"", "\"a//b\" (a component of its name is empty)",
                                 "\"f\" (it is a folder as well, of \"f/1\")", "xxx"}) {
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(name));
  }
  EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("fine")));
}

}  // namespace
}  // namespace tutti::storage
