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

}  // namespace
}  // namespace tutti::storage
