#include "spec/data/signed_address.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr char kSigned[] = "https://a.blob.core.windows.net/c/x.csv?sv=1&sig=c2Vj%3D";

TEST(SignedAddress, NamesItsSignatureAndGetsItBack) {
  Signatures signatures;
  const std::string kept = WithoutSignature(kSigned, signatures);
  EXPECT_THAT(kept, StartsWith("https://a.blob.core.windows.net/c/x.csv?tutti-signature="));
  const std::string secret = SecretOfAddress(kept);
  EXPECT_THAT(signatures, ElementsAre(Pair(secret, "sv=1&sig=c2Vj%3D")));
  EXPECT_EQ(*WithSignature(kept, signatures), kSigned);
  EXPECT_EQ(WithoutSignature(kept, signatures), kept) << "twice is as once";
  const absl::Status gone = WithSignature(kept, {}).status();
  EXPECT_TRUE(absl::IsNotFound(gone));
  EXPECT_THAT(std::string(gone.message()), HasSubstr("with its signature again"));
  Signatures others;
  EXPECT_NE(WithoutSignature(absl::StrCat(kSigned, "x"), others), kept);
  EXPECT_FALSE(others.contains(secret));
}

TEST(SignedAddress, ASignatureIsOfOneServer) {
  Signatures signatures;
  const std::string kept = WithoutSignature(kSigned, signatures);
  const std::string query = kept.substr(kept.find('?'));
  for (const char* other :
       {"https://own.host/c/x.csv", "http://a.blob.core.windows.net/c/x.csv",
        "https://a.blob.core.windows.net:8443/c/x.csv",
        "https://own.host\\@a.blob.core.windows.net/", "https://a.blob.core.windows.net@own.host/",
        "https:///own.host/c/x.csv", "https://own.host#@a.blob.core.windows.net/",
        "https://a.blob.core.windows.net\\@own.host/",
        "https://a.blob.core.windows.net.own.host/"}) {
    const absl::Status refused = WithSignature(absl::StrCat(other, query), signatures).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << other;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("is no signature of http"), HasSubstr("signature again"),
                      Not(HasSubstr("c2Vj"))));
  }
  EXPECT_EQ(*WithSignature(absl::StrCat("https://A.Blob.core.windows.net/d/y", query), signatures),
            "https://A.Blob.core.windows.net/d/y?sv=1&sig=c2Vj%3D")
      << "another file of the server: the server itself knows what it is a signature of";
}

TEST(SignedAddress, OneThatWasKeptWithoutItsServerIsRefused) {
  // The hash of "sv=1&sig=c2Vj%3D" alone.
  const std::string hash = base::Hex(base::Sha256Of("sv=1&sig=c2Vj%3D")).substr(0, 24);
  const std::string kept =
      absl::StrCat("https://a.blob.core.windows.net/c/x.csv?tutti-signature=", hash);
  const absl::Status refused =
      WithSignature(kept, {{SecretOfAddress(kept), "sv=1&sig=c2Vj%3D"}}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("kept by an earlier tutti"), HasSubstr("signature again")));
}

TEST(SignedAddress, OneWithoutASignatureStaysAsItIs) {
  Signatures signatures;
  for (const char* address :
       {"https://e.org/x.csv", "https://e.org/x.csv?version=3", "/data/x?sig=1", ""}) {
    EXPECT_EQ(WithoutSignature(address, signatures), address);
    EXPECT_EQ(*WithSignature(address, {}), address);
    EXPECT_EQ(SecretOfAddress(address), "") << address;
  }
  EXPECT_EQ(SecretOfAddress("https://e.org/x?tutti-signature=../../etc"), "");
  EXPECT_THAT(signatures, IsEmpty());
}

TEST(SignedAddress, APathInAJobFileIsReplacedHoweverItIsWritten) {
  Signatures signatures;
  const std::string kept = WithoutSignature(kSigned, signatures);
  for (const char* line :
       {"path: %", "  path : '%'", "\"path\": \"%\"", "x: {type: uri_file, path: %}",
        "x: {path: \"%\", type: uri_file}", "'path':\n    %\n", "path: %  # of May",
        "a: {path: %}\nb: {path: https://e.org/y}\nc: {path: '%'}\n"}) {
    const std::string text = absl::StrCat("inputs:\n", line);
    const std::string written = absl::StrReplaceAll(text, {{"%", kSigned}});
    EXPECT_EQ(FileWithoutSignatures(written, signatures), absl::StrReplaceAll(text, {{"%", kept}}));
  }
  EXPECT_EQ(signatures.size(), 1u);
}

TEST(SignedAddress, WhatIsNoPathOfAJobFileStaysAsItIs) {
  Signatures signatures;
  for (const char* line : {"command: curl '%'", "x: %", "mypath: %",
                           "environment_variables: {U: %}", "path: ://", "path: https://", "://",
                           "path: x://y?sig=1", "path: \"https://e.org/x?sv=1\\u0026sig=x\""}) {
    const std::string text = absl::StrReplaceAll(line, {{"%", kSigned}});
    EXPECT_EQ(FileWithoutSignatures(text, signatures), text);
  }
  EXPECT_THAT(signatures, IsEmpty());
}

}  // namespace
}  // namespace tutti::spec
