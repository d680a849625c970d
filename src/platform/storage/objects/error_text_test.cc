#include "platform/storage/arrow/arrow_errors.h"

#include <arrow/util/io_util.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace tutti::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Told(const std::string& text) { return StatusFrom(arrow::Status::IOError(text)); }

// What the libraries of pyarrow 25 print, from runs against Azurite, moto and servers that fail.
TEST(StatusFrom, KnowsTheStoresOwnErrors) {
  const std::string azure =
      "GetProperties failed for 'http://127.0.0.1:1/acme/c/x?sig=HUSH&sv=2020-01-01'. Cannot "
      "initialise an ObjectInputFile. Azure Error: ";
  EXPECT_TRUE(absl::IsPermissionDenied(Told(azure + "[AuthorizationFailure] 403 Server failed")));
  EXPECT_TRUE(absl::IsNotFound(Told(azure + "[ContainerNotFound] 404 The specified")));
  EXPECT_TRUE(absl::IsUnavailable(Told(azure + "[ServerBusy] 503 The server is busy")));
  EXPECT_TRUE(absl::IsUnavailable(
      Told(azure + "[] Fail to get a new connection for: http://127.0.0.1:1. Could not connect")));
  EXPECT_TRUE(absl::IsAborted(Told(azure + "[ConditionNotMet] 412 The condition")));
  const std::string aws = "When listing objects under key '' in bucket 'b': AWS Error ";
  EXPECT_TRUE(absl::IsNotFound(Told(aws + "NO_SUCH_BUCKET during ListObjectsV2 operation: x")));
  EXPECT_TRUE(absl::IsPermissionDenied(
      Told(aws + "INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: x")));
  EXPECT_TRUE(absl::IsUnavailable(Told(aws + "NETWORK_CONNECTION during HeadObject operation")));
  EXPECT_TRUE(absl::IsUnavailable(Told(aws + "SLOW_DOWN during GetObject operation: x")));
}

TEST(StatusFrom, SaysWhatToDo) {
  EXPECT_THAT(std::string(Told("AWS Error REQUEST_TIME_TOO_SKEWED during X").message()),
              HasSubstr("clock"));
  EXPECT_THAT(std::string(Told("AWS Error UNKNOWN (HTTP status 301) during X. Looks like the "
                               "configured region is 'us-east-1' while the bucket is located in "
                               "'eu-west-1'.")
                              .message()),
              HasSubstr("set region to eu-west-1"));
}

TEST(StatusFrom, KnowsOthersByTheStatusOfHttp) {
  EXPECT_TRUE(absl::IsUnavailable(Told("AWS Error UNKNOWN (HTTP status 502) during GetObject")));
  EXPECT_TRUE(absl::IsUnavailable(Told("Azure Error: [] 429 Too many")));
  EXPECT_TRUE(absl::IsPermissionDenied(Told("Azure Error: [NewOne] 403 New")));
}

TEST(StatusFrom, KnowsErrorsOfAFileSystem) {
  EXPECT_TRUE(
      absl::IsNotFound(StatusFrom(arrow::internal::IOErrorFromErrno(ENOENT, "no such path"))));
  EXPECT_TRUE(
      absl::IsResourceExhausted(StatusFrom(arrow::internal::IOErrorFromErrno(ENOSPC, "full"))));
}

TEST(StatusFrom, NeverRepeatsAnAddress) {
  for (const char* text :
       {"GetProperties failed for 'http://h/c/x?sig=HUSH&sv=2020'. Azure Error: [Odd] 403 HUSH",
        "Something else with 'http://h/c/x?sig=HUSH'", "AWS Error ODD during X: HUSH"}) {
    EXPECT_THAT(std::string(Told(text).message()), Not(HasSubstr("HUSH"))) << text;
  }
}

}  // namespace
}  // namespace tutti::storage
