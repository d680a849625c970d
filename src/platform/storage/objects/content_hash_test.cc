#include "platform/storage/objects/content_hash.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

TEST(ContentHash, IsThatOfThePublishedExamples) {
  ContentHash hash({.md5 = true});
  hash.Update("a");
  hash.Update("bc");
  const ContentHash::Result result = hash.Finish();
  EXPECT_EQ(result.md5, "900150983cd24fb0d6963f7d28e17f72");  // RFC 1321, A.5
  EXPECT_EQ(result.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ContentHash, LeavesMd5OutWhereNobodyAsksForIt) {
  EXPECT_EQ(ContentHash(ContentHash::Kinds{}).Finish().md5, "");
}

}  // namespace
}  // namespace tutti::storage
