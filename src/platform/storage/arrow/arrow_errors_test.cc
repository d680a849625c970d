#include "platform/storage/arrow/arrow_errors.h"

#include <arrow/util/io_util.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace tutti::storage {
namespace {

TEST(StatusFrom, KnowsErrorsOfAFileSystem) {
  EXPECT_TRUE(
      absl::IsNotFound(StatusFrom(arrow::internal::IOErrorFromErrno(ENOENT, "no such path"))));
  EXPECT_TRUE(
      absl::IsResourceExhausted(StatusFrom(arrow::internal::IOErrorFromErrno(ENOSPC, "full"))));
}

TEST(StatusFrom, KnowsErrorsOfStoresByTheirText) {
  EXPECT_TRUE(StatusFrom(arrow::Status::OK()).ok());
  EXPECT_TRUE(
      absl::IsNotFound(StatusFrom(arrow::Status::IOError("Azure Error: [BlobNotFound] 404 The"))));
}

TEST(StatusOfGoogleRead, TellsThatTheHashMayNotMatchWhereTheLibraryHasEndedIt) {
  const auto closed = arrow::Status::Invalid("Cannot read from closed file");
  const absl::Status ended = StatusOfGoogleRead(closed);
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_EQ(ended.message(), "the store has ended what it sent: its hash may not match");
  EXPECT_FALSE(absl::IsDataLoss(StatusFrom(closed))) << "other stores compare no hash so";
  EXPECT_TRUE(StatusOfGoogleRead(arrow::Status::OK()).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      StatusOfGoogleRead(arrow::internal::IOErrorFromErrno(ENOSPC, "full"))));
}

}  // namespace
}  // namespace tutti::storage
