#include "platform/storage/objects/object_version.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

StoredObject Object(double modified, const std::string& etag = "") {
  StoredObject object{"a", 10, etag};
  object.modified = modified;
  return object;
}

TEST(VersionOf, IsTheTimeOfWhatIsSettledAndElseTheEtag) {
  EXPECT_TRUE(IsSettled(Object(99), 100));
  EXPECT_FALSE(IsSettled(Object(100), 100));
  EXPECT_FALSE(IsSettled(Object(0), 100)) << "a store that tells no time";
  EXPECT_EQ(VersionOf(Object(99, "e"), 100), VersionOf(Object(99), 100));
  EXPECT_NE(VersionOf(Object(98), 100), VersionOf(Object(99), 100));
  EXPECT_EQ(VersionOf(Object(100, "e"), 100), "e");
  EXPECT_NE(VersionOf(Object(101), 100), VersionOf(Object(102), 100)) << "without an ETag";
}

TEST(TakeAnswer, UnsettlesWhatHasChangedSinceItWasListed) {
  StoredObject listed = Object(50.9);
  TakeAnswer(Object(50, "e"), listed);
  EXPECT_EQ(listed.modified, 50.9) << "headers have whole seconds";
  EXPECT_EQ(listed.etag, "e");
  TakeAnswer(Object(5000, "f"), listed);
  EXPECT_FALSE(IsSettled(listed, 100));
  EXPECT_EQ(VersionOf(listed, 100), "f");
  listed = Object(50);
  StoredObject longer = Object(50, "g");
  longer.bytes = 11;
  TakeAnswer(longer, listed);
  EXPECT_FALSE(IsSettled(listed, 100));
  EXPECT_EQ(listed.bytes, 11);
}

}  // namespace
}  // namespace tutti::storage
