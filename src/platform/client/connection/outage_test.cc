#include "platform/client/connection/outage.h"

#include <gmock/gmock.h>

namespace tutti::client {
namespace {

TEST(Absence, WhatAnotherServiceCouldAnswerIsTriedAgain) {
  EXPECT_TRUE(MayRecover(absl::UnavailableError("")));
  EXPECT_TRUE(MayRecover(absl::DeadlineExceededError("")));
  EXPECT_TRUE(MayRecover(absl::ResourceExhaustedError("")));
  EXPECT_TRUE(MayRecover(absl::UnauthenticatedError("")));
  EXPECT_TRUE(MayRecover(absl::InternalError("")));
}

TEST(Absence, WhatIsWrongOfTheCallItselfIsNot) {
  EXPECT_FALSE(MayRecover(absl::OkStatus()));
  EXPECT_FALSE(MayRecover(absl::NotFoundError("")));
  EXPECT_FALSE(MayRecover(absl::InvalidArgumentError("")));
  EXPECT_FALSE(MayRecover(absl::PermissionDeniedError("")));
}

TEST(Absence, GivingUpSaysHowLongAndWhatWasLastInTheWay) {
  const absl::Status status = DidNotComeBack(absl::UnavailableError("refused"), absl::Minutes(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "the service did not come back within 10m: refused");
}

}  // namespace
}  // namespace tutti::client
