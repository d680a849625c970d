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

TEST(Absence, WhatWasNeverThereStaysTheSameError) {
  const absl::Status away = absl::UnavailableError("no such host");
  EXPECT_FALSE(WasNeverThere(away));
  const absl::Status marked = NeverThere(away);
  EXPECT_TRUE(WasNeverThere(marked) && MayRecover(marked));
  EXPECT_EQ(marked.message(), "no such host");
}

TEST(Absence, GivingUpSaysHowLongAndWhatWasLastInTheWay) {
  const absl::Status status = DidNotComeBack(absl::UnavailableError("refused"), absl::Minutes(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "the service did not come back within 10m: refused");
}

}  // namespace
}  // namespace tutti::client
