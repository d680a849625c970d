#include "platform/service/attempt/hearing.h"

#include <gtest/gtest.h>

namespace tutti::service {
namespace {

constexpr absl::Duration kPause = absl::Seconds(150);

absl::Duration At(int seconds) { return absl::Seconds(seconds); }

TEST(Hearing, GoesBackToTheFirstWordBehindTheLastLongPause) {
  Hearing hearing;
  EXPECT_EQ(hearing.Since(At(1000), kPause), At(1000)) << "nobody has been heard of";
  for (const int second : {1000, 1100, 1250}) hearing.Note(At(second), kPause);
  EXPECT_EQ(hearing.Since(At(1300), kPause), At(1000));
  hearing.Note(At(1401), kPause);
  EXPECT_EQ(hearing.Since(At(1402), kPause), At(1401));
}

TEST(Hearing, IsOverAsLongAsNobodyIsHeardOf) {
  Hearing hearing;
  hearing.Note(At(1000), kPause);
  EXPECT_EQ(hearing.Since(At(1150), kPause), At(1000));
  EXPECT_EQ(hearing.Since(At(1151), kPause), At(1151));
}

}  // namespace
}  // namespace tutti::service
