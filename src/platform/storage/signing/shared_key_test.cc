#include "platform/storage/signing/shared_key.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

constexpr char kKeyOfAccount[] = "YSBrZXkgb2YgdHV0dGk=";

RequestToSign List() {
  return {"GET",
          "/share/a%20b",
          {{"comp", "list"}, {"restype", "directory"}},
          {{"x-ms-date", "Fri, 27 Nov 2026 01:00:00 GMT"}, {"x-ms-version", "2022-11-02"}}};
}

// Azure's own library for Python (azure-storage-file-share 12.15.0) makes this signature.
TEST(SharedKeyOf, SignsAddressQueryAndHeadersAsAzuresLibraryDoes) {
  EXPECT_EQ(SharedKeyOf(List(), "acme", kKeyOfAccount).value_or(""),
            "SharedKey acme:tlENO8rx+ser6LzJQrQLJvK9hL9UcEvrWIaXUlgPG8M=");
}

TEST(SharedKeyOf, SignsTheLengthOfABody) {
  RequestToSign put = List();
  put.method = "PUT";
  put.path = "/share/f";
  put.query = {{"comp", "range"}};
  put.headers["x-ms-range"] = "bytes=0-4";
  put.headers["x-ms-write"] = "update";
  put.body_bytes = 5;
  EXPECT_EQ(SharedKeyOf(put, "acme", kKeyOfAccount).value_or(""),
            "SharedKey acme:Cp36se3iXwqsT198YTHVpizSY5nffJqtT/utrSP6mPw=");
}

TEST(SharedKeyOf, RefusesAKeyThatIsNotBase64) {
  EXPECT_TRUE(absl::IsInvalidArgument(SharedKeyOf(List(), "acme", "not base64!").status()));
}

}  // namespace
}  // namespace tutti::storage
