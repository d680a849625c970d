// Covers: platform/client/commands/text_of.h.
#include <gmock/gmock.h>

#include <sstream>

#include "base/file.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/connection_fake.h"
#include "spec/data/datastore.h"

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kFile[] =
    "name: blobs\ntype: azure_blob\naccount_name: acme\ncontainer_name: images\n"
    "description: photos\ncredentials: {account_key: aHVudGVyMjI=}\n";

class DatastoreCommandsTest : public ::testing::Test {
 protected:
  using Command = absl::StatusOr<ExitCode> (*)(Context&, const DatastoreOptions&);

  absl::Status Do(Command command, DatastoreOptions options) {
    out_.str("");
    err_.str("");
    Context context{fake_.connect(), home_.path(), "/programs", "0.1.0", out_, err_, {}, {}};
    return command(context, options).status();
  }
  absl::Status Create(const std::string& text, std::vector<std::string> settings = {}) {
    const std::string file = home_.path() / "store.yml";
    if (!base::WriteFileAtomic(file, text).ok()) std::abort();
    return Do(DatastoreCreate, {.file = file, .settings = std::move(settings)});
  }
  spec::Datastores Kept() { return spec::ReadDatastores(home_.path()).value(); }

  const base::TemporaryDirectory home_;
  int status_ = 200;
  std::string sent_;  // the last body
  FakeService fake_{[this](const http::ClientRequest& request) {
    sent_ = request.body;
    return FakeService::Answer{.status = status_, .chunks = {R"({"failed_jobs": ["brave_ant"]})"}};
  }};
  std::ostringstream out_, err_;
};

TEST_F(DatastoreCommandsTest, TakesATextThatNoFileHas) {
  ASSERT_TRUE(Do(DatastoreCreate, {.file = "datastore of job.json", .text = kFile}).ok());
  EXPECT_EQ(Kept().at("blobs").description, "photos");
  const absl::Status wrong =
      Do(DatastoreCreate, {.file = "datastore of job.json", .text = "name: x\ntype: azure_blob\n"});
  EXPECT_THAT(wrong.message(), HasSubstr("datastore of job.json:"));
}

TEST_F(DatastoreCommandsTest, TheCredentialsGoToTheServiceAndNowhereElse) {
  ASSERT_TRUE(Create(kFile).ok());
  EXPECT_EQ(out_.str(), "azureml://datastores/blobs/paths/ is acme/images\n");
  EXPECT_THAT(fake_.requests(), ElementsAre("PUT /v1/secrets/datastore.blobs"));
  EXPECT_EQ(sent_, R"({"account_key":"aHVudGVyMjI=","store":"azure_blob acme/images"})");
  const auto list = base::ReadFile(spec::DatastoresFile(home_.path()));
  EXPECT_THAT(*list, AllOf(HasSubstr("\"datastore.blobs\""), Not(HasSubstr("aHVudGVyMjI"))));
  ASSERT_TRUE(Do(DatastoreShow, {.name = "blobs", .format = Format::kJson}).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("\"account_key\""), Not(HasSubstr("aHVudGVyMjI"))));
  ASSERT_TRUE(Do(DatastoreList, {}).ok());
  EXPECT_EQ(out_.str(),
            "NAME   TYPE        WHERE        CREDENTIALS                           DESCRIPTION\n"
            "blobs  azure_blob  acme/images  account_key (secret datastore.blobs)  photos\n");
}

TEST_F(DatastoreCommandsTest, AServiceThatTakesNoCredentialsLeavesNoDatastore) {
  status_ = 503;
  EXPECT_FALSE(Create(kFile).ok());
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(DatastoreCommandsTest, SettingsChangeTheFileAndAreNoCredentials) {
  ASSERT_TRUE(Create(kFile, {"container_name=others"}).ok());
  EXPECT_EQ(Kept().at("blobs").place.container, "others");
  const absl::Status refused = Create(kFile, {"credentials.account_key=aHVudGVyMjI="});
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("arguments can be read by others"), Not(HasSubstr("aHVudGVyMjI"))));
  EXPECT_THAT(std::string(Create("name: x\n").message()),
              HasSubstr("store.yml:1: the key \"type\" is missing"));
}

TEST_F(DatastoreCommandsTest, WhatNoDatastoreNamesAnyMoreIsDeleted) {
  ASSERT_TRUE(Create(kFile).ok());
  ASSERT_TRUE(Create("name: blobs\ntype: azure_blob\naccount_name: acme\ncontainer_name: c\n"
                     "credentials: {secret: acme-key}\n")
                  .ok());
  EXPECT_EQ(fake_.requests().back(), "DELETE /v1/secrets/datastore.blobs");
  ASSERT_TRUE(Do(DatastoreDelete, {.name = "blobs", .yes = true}).ok());
  EXPECT_EQ(fake_.requests().size(), 2u) << "acme-key is the user's own";
  EXPECT_EQ(out_.str(), "datastore blobs is forgotten\n");
  EXPECT_THAT(Kept(), IsEmpty());
  ASSERT_TRUE(Create(kFile).ok());
  ASSERT_TRUE(Do(DatastoreDelete, {.name = "blobs", .yes = true}).ok());
  EXPECT_EQ(out_.str(),
            "the credentials in secret datastore.blobs are deleted\n"
            "failed, since they waited for it: brave_ant\n"
            "datastore blobs is forgotten\n");
  EXPECT_TRUE(absl::IsNotFound(Do(DatastoreShow, {.name = "blobs"})));
}

TEST_F(DatastoreCommandsTest, ADatastoreThatBecomesAnotherStoreIsToldWithWhatItDoesToJobs) {
  ASSERT_TRUE(Create(kFile).ok());
  ASSERT_TRUE(Create(kFile).ok());
  EXPECT_EQ(err_.str(), "") << "new credentials of the same store";
  ASSERT_TRUE(Create(kFile, {"container_name=others"}).ok());
  EXPECT_THAT(err_.str(), HasSubstr("blobs was azure_blob acme/images and is azure_blob "
                                    "acme/others: jobs that were accepted for the former"));
}

TEST_F(DatastoreCommandsTest, AFolderNeedsNoService) {
  ASSERT_TRUE(Create("name: share\ntype: local\npath: /data\n").ok());
  EXPECT_EQ(out_.str(), "azureml://datastores/share/paths/ is /data\n");
  EXPECT_THAT(fake_.requests(), IsEmpty());
}

}  // namespace
}  // namespace tutti::client
