#include "platform/storage/objects/error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tutti::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::Status ParsedError(const std::string& text) { return StatusFromText("IOError: " + text); }

// The libraries of pyarrow 25 print these in runs against Azurite, moto and servers that fail.
TEST(StatusFromText, KnowsTheStoresOwnErrors) {
  const std::string azure =
      "GetProperties failed for 'http://127.0.0.1:1/acme/c/x?sig=HUSH&sv=2020-01-01'. Cannot "
      "initialise an ObjectInputFile. Azure Error: ";
  EXPECT_TRUE(
      absl::IsPermissionDenied(ParsedError(azure + "[AuthorizationFailure] 403 Server failed")));
  EXPECT_TRUE(absl::IsNotFound(ParsedError(azure + "[ContainerNotFound] 404 The specified")));
  EXPECT_TRUE(absl::IsUnavailable(ParsedError(azure + "[ServerBusy] 503 The server is busy")));
  EXPECT_TRUE(absl::IsUnavailable(ParsedError(
      azure + "[] Fail to get a new connection for: http://127.0.0.1:1. Could not connect")));
  // This comes from a server that ends in the middle of an answer.
  EXPECT_TRUE(absl::IsUnavailable(
      ParsedError(azure +
                  "[] Error while reading from network socket. CURLE code: 56. Failure when "
                  "receiving data from the peer")));
  EXPECT_TRUE(absl::IsAborted(ParsedError(azure + "[ConditionNotMet] 412 The condition")));
  const std::string aws = "When listing objects under key '' in bucket 'b': AWS Error ";
  EXPECT_TRUE(
      absl::IsNotFound(ParsedError(aws + "NO_SUCH_BUCKET during ListObjectsV2 operation: x")));
  EXPECT_TRUE(absl::IsPermissionDenied(
      ParsedError(aws + "INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: x")));
  EXPECT_TRUE(
      absl::IsUnavailable(ParsedError(aws + "NETWORK_CONNECTION during HeadObject operation")));
  EXPECT_TRUE(absl::IsUnavailable(ParsedError(aws + "SLOW_DOWN during GetObject operation: x")));
}

TEST(StatusFromText, SaysWhatToDo) {
  EXPECT_THAT(std::string(ParsedError("AWS Error REQUEST_TIME_TOO_SKEWED during X").message()),
              HasSubstr("clock"));
  EXPECT_THAT(
      std::string(ParsedError("AWS Error UNKNOWN (HTTP status 301) during X. Looks like the "
                              "configured region is 'us-east-1' while the bucket is located in "
                              "'eu-west-1'.")
                      .message()),
      HasSubstr("set region to eu-west-1"));
}

TEST(StatusFromText, KnowsOthersByTheStatusOfHttp) {
  EXPECT_TRUE(
      absl::IsUnavailable(ParsedError("AWS Error UNKNOWN (HTTP status 502) during GetObject")));
  EXPECT_TRUE(absl::IsUnavailable(ParsedError("Azure Error: [] 429 Too many")));
  EXPECT_TRUE(absl::IsPermissionDenied(ParsedError("Azure Error: [NewOne] 403 New")));
}

TEST(StatusFromText, TakesTheNameOfTheStoreBeforeThatOfAwssLibrary) {
  const absl::Status token = ParsedError(
      "AWS Error UNKNOWN (HTTP status 400) during HeadObject operation: Unable to parse "
      "ExceptionName: InvalidToken Message: The provided token is malformed");
  EXPECT_TRUE(absl::IsPermissionDenied(token)) << token;
  EXPECT_THAT(std::string(token.message()), HasSubstr("(InvalidToken)"));
}

TEST(StatusFromText, TakesAnyLength) {
  const std::string much(8 << 20, 'A');
  for (const std::string& text :
       {"Azure Error: [" + much + "] 404", "AWS Error " + much, "bucket is located in '" + much,
        "Unable to parse ExceptionName: " + much, "HTTP status " + much, much}) {
    const absl::Status status = ParsedError(text);
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 300u);
  }
  EXPECT_TRUE(absl::IsNotFound(ParsedError("Azure Error: [BlobNotFound] 404 " + much)));
}

TEST(StatusFromText, NeverRepeatsAnAddress) {
  for (const char* text :
       {"GetProperties failed for 'http://h/c/x?sig=HUSH&sv=2020'. Azure Error: [Odd] 403 HUSH",
        "Something else with 'http://h/c/x?sig=HUSH'", "AWS Error ODD during X: HUSH"}) {
    EXPECT_THAT(std::string(ParsedError(text).message()), Not(HasSubstr("HUSH"))) << text;
  }
}

TEST(StatusFromText, ANameThatTheStoreDoesNotTakeIsRefusedForGood) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusFromText("AWS Error UNKNOWN (HTTP status 400) during PutObject operation: Unable to "
                     "parse ExceptionName: KeyTooLongError Message: Your key is too long")));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusFromText("Azure Error: [InvalidUri] 400 x")));
}

}  // namespace
}  // namespace tutti::storage
