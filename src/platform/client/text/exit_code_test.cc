#include "platform/client/text/exit_code.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(ExitCode, TellsTheUsualErrorsApart) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kDeadline);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), ExitCode::kDenied);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), ExitCode::kSystemError);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("a file")), ExitCode::kSystemError);
}

TEST(ExitCode, AJobsEndIsThePrograms) {
  EXPECT_EQ(ExitCodeOfJobState("Completed"), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOfJobState("Failed"), ExitCode::kJobFailed);
  EXPECT_EQ(ExitCodeOfJobState("Canceled"), ExitCode::kCanceled);
}

}  // namespace
}  // namespace tutti::client
