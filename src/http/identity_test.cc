// Covers: openssl.cc, tls.cc.
#include "http/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "http/client/client.h"
#include "http/server/server.h"

namespace tutti::http {
namespace {

using ::testing::HasSubstr;

std::string Made() { return *Identity::MakeSelfSigned({"10.1.0.1", "login-1", "::1"}); }
std::string KeyOf(const std::string& pem) { return pem.substr(0, pem.find("-----BEGIN CERT")); }
std::string CertificateOf(const std::string& pem) { return pem.substr(KeyOf(pem).size()); }

std::unique_ptr<Server> StartWith(std::shared_ptr<const Identity> identity) {
  ServerOptions options;
  options.identity = std::move(identity);
  return *Server::Start(options, [](const Request&, Connection&) { return JsonResponse("{}"); });
}

TEST(Identity, IsForTheNamesThatWereGivenAndNoOthers) {
  const auto identity = *Identity::FromPem(Made());
  const BioPtr text = BioOf(identity->certificate());
  const CertificatePtr certificate = NextCertificate(text.get());
  ASSERT_NE(certificate, nullptr);
  X509* const x = certificate.get();
  EXPECT_EQ(::X509_check_ip_asc(x, "10.1.0.1", 0), 1);
  EXPECT_EQ(::X509_check_ip_asc(x, "::1", 0), 1);
  EXPECT_EQ(::X509_check_host(x, "login-1", 0, 0, nullptr), 1);
  EXPECT_EQ(::X509_check_ip_asc(x, "10.1.0.2", 0), 0);
  EXPECT_EQ(::X509_check_host(x, "login-2", 0, 0, nullptr), 0);
  EXPECT_EQ(NextCertificate(text.get()), nullptr);
}

TEST(Identity, IsAnotherEachTime) { EXPECT_NE(Made(), Made()); }

TEST(Identity, ShowsNoKey) {
  EXPECT_FALSE(absl::StrContains((*Identity::FromPem(Made()))->certificate(), "PRIVATE"));
}

TEST(Identity, SaysWhatDoesNotFit) {
  const std::string one = Made(), other = Made();
  const auto error_of = [](const std::string& pem) {
    const auto identity = Identity::FromPem(pem);
    EXPECT_EQ(identity.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(identity.status().message());
  };
  EXPECT_THAT(error_of(""), HasSubstr("no certificate"));
  EXPECT_THAT(error_of(KeyOf(one)), HasSubstr("no certificate"));
  EXPECT_THAT(error_of(CertificateOf(one)), HasSubstr("no private key"));
  EXPECT_THAT(error_of(KeyOf(other) + CertificateOf(one)),
              HasSubstr("the key is not the first certificate's"));
  EXPECT_THAT(error_of(one.substr(0, one.size() / 2)), HasSubstr("no certificate"));
  const std::string broken = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
  EXPECT_THAT(error_of(KeyOf(one) + broken), HasSubstr("no certificate"));
  EXPECT_THAT(error_of(one + broken), HasSubstr("a certificate in it cannot be read"));
}

TEST(Identity, TellsWhatOthersWillHaveAgainstIt) {
  const auto identity = *Identity::FromPem(Made());
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_THAT(identity->Remarks("10.1.0.1", now), testing::IsEmpty());
  EXPECT_THAT(identity->Remarks("10.1.0.9", now), testing::ElementsAre("is not for 10.1.0.9"));
  const absl::Time late = absl::FromCivil(absl::CivilSecond(9999, 12, 20), absl::UTCTimeZone());
  EXPECT_THAT(identity->Remarks("10.1.0.1", late), testing::ElementsAre("ends on 9999-12-31"));
  EXPECT_THAT(identity->Remarks("10.1.0.1", late + absl::Hours(24 * 30)),
              testing::ElementsAre("has ended on 9999-12-31"));
}

TEST(Identity, OnlyTheOneThatIsKnownIsSpokenTo) {
  const auto known = *Identity::FromPem(Made());
  const auto server = StartWith(known);
  EXPECT_THAT(server->url(), testing::StartsWith("https://127.0.0.1:"));
  // Though the address is not among the certificate's.
  Client friendly(server->url(), "", known->certificate());
  EXPECT_TRUE(friendly.Send({.target = "/"}).ok());
  for (const std::string& certificate :
       {(*Identity::FromPem(Made()))->certificate(), std::string()}) {
    Client stranger(server->url(), "", certificate);
    const auto refused = stranger.Send({.target = "/"});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("certificate is not trusted"));
  }
  Client broken(server->url(), "", "no PEM");
  EXPECT_EQ(broken.Send({.target = "/"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Identity, WhoSpeaksPlainHttpIsToldWhatToDo) {
  const auto server = StartWith(*Identity::FromPem(Made()));
  Client plain(absl::StrCat("http://127.0.0.1:", server->port()), "");
  const auto answer = plain.Send({.target = "/"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 400);
  EXPECT_THAT(answer->body, HasSubstr("https://"));
}

}  // namespace
}  // namespace tutti::http
