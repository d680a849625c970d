#include "platform/client/storage/store_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using spec::CredentialKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FindCredentialsTest : public ::testing::Test {
 protected:
  FindCredentialsTest() {
    address_.text = address_.of_store = "s3://sets/a";
    address_.place = {.kind = spec::StoreKind::kS3, .container = "sets"};
  }
  absl::StatusOr<FoundCredentials> Find(bool write = false) {
    return FindCredentials(fake_.connect(), address_, write,
                           [this](const char* name) { return variables_[name]; });
  }

  StorageAddress address_;
  std::map<std::string, std::string> variables_;
  int status_ = 200;
  std::string answer_ =
      R"({"place":{"kind":"s3","container":"sets"},"credentials":{"kind":"access_key",)"
      R"("access_key_id":"ASIA","secret_access_key":"s","session_token":"t"},"expires":1700000000})";
  std::string sent_;
  FakeService fake_{[this](const http::ClientRequest& request) {
    sent_ = request.body;
    return FakeService::Answer{.status = status_, .chunks = {answer_}};
  }};
};

TEST_F(FindCredentialsTest, ADatastoresAreTheServicesForALimitedTime) {
  address_.place.secret = "datastore.sets";
  const auto found = Find(/*write=*/true);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->credentials.access_key_id, "ASIA");
  EXPECT_EQ(found->expires, absl::FromUnixSeconds(1700000000));
  EXPECT_THAT(fake_.requests(), ElementsAre("POST /v1/storage-grants"));
  EXPECT_EQ(sent_, R"({"address":"s3://sets/a","write":true})");
}

TEST_F(FindCredentialsTest, OthersAreTheUsersOwnOrPublic) {
  EXPECT_EQ(Find()->credentials.kind, CredentialKind::kNone);
  variables_ = {{"AWS_ACCESS_KEY_ID", "AKIA"}, {"AWS_SECRET_ACCESS_KEY", "s"}};
  EXPECT_EQ(Find()->credentials.access_key_id, "AKIA");
  EXPECT_THAT(fake_.requests(), IsEmpty());
  address_.sas = "sig=x";
  EXPECT_EQ(Find()->credentials.sas, "sig=x");
}

TEST_F(FindCredentialsTest, TheUsersOwnServeWhereTheServiceGivesNone) {
  address_.place.secret = "datastore.sets";
  status_ = 409;
  answer_ = R"({"error": {"code": "x", "message": "no session"}})";
  EXPECT_THAT(Find().status().message(), HasSubstr("no session"));
  variables_ = {{"AWS_ACCESS_KEY_ID", "AKIA"}, {"AWS_SECRET_ACCESS_KEY", "s"}};
  EXPECT_EQ(Find()->credentials.access_key_id, "AKIA");
  status_ = 503;
  EXPECT_THAT(Find().status().message(), HasSubstr("no session")) << "it is away";
  status_ = 200;
  answer_ = "{}";
  variables_.clear();
  EXPECT_THAT(Find().status().message(), HasSubstr("no grant"));
}

TEST(CredentialsOfVariables, AreThoseThatTheStoresOwnToolsRead) {
  std::map<std::string, std::string> set = {
      {"AZURE_TENANT_ID", "t"}, {"AZURE_CLIENT_ID", "c"}, {"AZURE_CLIENT_SECRET", "s"}};
  const auto kind = [&] {
    const auto found = CredentialsOfVariables(spec::StoreKind::kAzureBlob,
                                              [&](const char* name) { return set[name]; });
    return found.has_value() ? found->kind : CredentialKind::kNone;
  };
  EXPECT_EQ(kind(), CredentialKind::kServicePrincipal);
  set["AZURE_STORAGE_KEY"] = "k";
  EXPECT_EQ(kind(), CredentialKind::kAccountKey);
  set["AZURE_STORAGE_SAS_TOKEN"] = "sig=x";
  EXPECT_EQ(kind(), CredentialKind::kSas);
  set.clear();
  EXPECT_EQ(kind(), CredentialKind::kNone);
  set = {{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "s"}};
  const auto of_google = [&] {
    return CredentialsOfVariables(spec::StoreKind::kGcs,
                                  [&](const char* name) { return set[name]; });
  };
  EXPECT_FALSE(of_google().has_value()) << "no key of AWS goes to Google";
  set = {{"GS_ACCESS_KEY_ID", "GOOG1"}, {"GS_SECRET_ACCESS_KEY", "s"}};
  EXPECT_EQ(of_google()->access_key_id, "GOOG1");
}

}  // namespace
}  // namespace tutti::client
