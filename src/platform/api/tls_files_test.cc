#include "platform/api/tls_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"

namespace tutti::api {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TlsFilesTest : public ::testing::Test {
 protected:
  std::string Text(const char* name) const {
    return base::ReadFile(home_.path() / name, 1 << 20).value_or("");
  }
  std::string Error() const {
    return std::string(IdentityIn(home_.path(), "127.0.0.1").status().message());
  }
  const base::TemporaryDirectory home_;
};

TEST_F(TlsFilesTest, AreMadeOnceAndKept) {
  const auto first = IdentityIn(home_.path(), "127.0.0.1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)->certificate(), StartsWith("-----BEGIN CERTIFICATE-----"));
  const std::string key = Text("tls.pem");
  const auto second = IdentityIn(home_.path(), "127.0.0.1");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Text("tls.pem"), key) << "jobs that run know the service by it";
  EXPECT_EQ((*second)->certificate(), (*first)->certificate());
}

TEST_F(TlsFilesTest, TheKeyIsForNobodyElseAndTheCertificateForAll) {
  ASSERT_TRUE(IdentityIn(home_.path(), "127.0.0.1").ok());
  struct stat key {
  }, certificate{};
  ASSERT_EQ(::stat((home_.path() / "tls.pem").c_str(), &key), 0);
  ASSERT_EQ(::stat((home_.path() / "certificate.pem").c_str(), &certificate), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600u);
  EXPECT_EQ(certificate.st_mode & 0777, 0644u);
  EXPECT_THAT(Text("certificate.pem"), ::testing::Not(HasSubstr("PRIVATE KEY")));
}

TEST_F(TlsFilesTest, ASitesOwnTakesTheirPlace) {
  const base::TemporaryDirectory other;
  ASSERT_TRUE(IdentityIn(home_.path(), "127.0.0.1").ok());
  ASSERT_TRUE(IdentityIn(other.path(), "127.0.0.1").ok());
  fs::copy_file(other.path() / "tls.pem", home_.path() / "tls.pem",
                fs::copy_options::overwrite_existing);
  const auto identity = IdentityIn(home_.path(), "127.0.0.1");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(Text("certificate.pem"), (*identity)->certificate());
  EXPECT_EQ(Text("certificate.pem"),
            base::ReadFile(other.path() / "certificate.pem", 1 << 20).value_or(""));
}

TEST_F(TlsFilesTest, WhatIsNoKeyIsNamedWithItsFileAndTheRemedy) {
  ASSERT_TRUE(base::WriteFileAtomic(home_.path() / "tls.pem", "nothing\n").ok());
  EXPECT_THAT(Error(), AllOf(StartsWith((home_.path() / "tls.pem").string() + ": "),
                             HasSubstr("or remove it: then a new one is made")));
  EXPECT_EQ(Text("tls.pem"), "nothing\n") << "a site's file is never written over";
}

TEST_F(TlsFilesTest, ALinkThatLeadsNowhereIsNotWrittenOver) {
  fs::create_symlink("/no/such/key.pem", home_.path() / "tls.pem");
  EXPECT_EQ(Error(),
            (home_.path() / "tls.pem").string() + " is a link to a file that is not there");
}

}  // namespace
}  // namespace tutti::api
