#include "platform/storage/input_request.h"

#include <gmock/gmock.h>

#include "platform/storage/storage_fault.h"

namespace tutti::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

spec::Input Images(spec::CredentialKind credential, std::string secret) {
  spec::Input input;
  input.place = {.kind = spec::StoreKind::kAzureBlob,
                 .account = "acme",
                 .container = "images",
                 .path = "train",
                 .credential = credential,
                 .secret = std::move(secret),
                 .datastore = "blobs"};
  return input;
}

TEST(RequestFor, HasTheCredentialsOfItsSecret) {
  const spec::Input input = Images(spec::CredentialKind::kAccountKey, "datastore.blobs");
  const auto request = RequestFor(Operation::kList, input,
                                  {{"datastore.blobs", R"({"account_key": "a2V5"})"}, {"x", "y"}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->operation, Operation::kList);
  EXPECT_EQ(request->credentials.kind, spec::CredentialKind::kAccountKey);
  EXPECT_EQ(request->credentials.account_key, "a2V5");
  EXPECT_EQ(request->place.path, "train");
  EXPECT_EQ(request->type, PlaceType::kFolder);
}

TEST(RequestFor, SaysWhichSecretIsNotThereOrOfNoUse) {
  const spec::Input input = Images(spec::CredentialKind::kServicePrincipal, "datastore.blobs");
  EXPECT_THAT(std::string(RequestFor(Operation::kStat, input, {}).status().message()),
              HasSubstr("has not sent secret \"datastore.blobs\""));
  const auto wrong =
      RequestFor(Operation::kStat, input, {{"datastore.blobs", R"({"account_key": "a2V5"})"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong.status())) << wrong.status();
  EXPECT_THAT(std::string(wrong.status().message()), Not(HasSubstr("a2V5")));
  EXPECT_EQ(
      RequestFor(Operation::kStat, Images(spec::CredentialKind::kNone, ""), {})->credentials.kind,
      spec::CredentialKind::kNone);
}

TEST(RequestFor, SendsNoCredentialsToAnotherStoreThanTheyAreFor) {
  const spec::Input input = Images(spec::CredentialKind::kAccountKey, "datastore.blobs");
  const auto ask = [&](const std::string& secret) {
    return RequestFor(Operation::kList, input, {{"datastore.blobs", secret}});
  };
  EXPECT_TRUE(ask(R"({"account_key": "a2V5", "store": "azure_blob acme/images"})").ok());
  const auto replaced = ask(R"({"account_key": "a2V5", "store": "azure_blob acme/others"})");
  EXPECT_TRUE(absl::IsFailedPrecondition(replaced.status())) << replaced.status();
  EXPECT_EQ(replaced.status().message(),
            "datastore \"blobs\" was replaced after the job was submitted: it is azure_blob "
            "acme/others now, and the job is to read azure_blob acme/images; submit the job again");
  EXPECT_THAT(std::string(ask(R"({"sas": "sv=1"})").status().message()),
              AllOf(HasSubstr("has no account_key"), HasSubstr("submit the job again")));
}

TEST(PlaceTypeOf, AModelIsAFileOrAFolder) {
  EXPECT_EQ(PlaceTypeOf({.type = "uri_file"}), PlaceType::kFile);
  EXPECT_EQ(PlaceTypeOf({.type = "mltable"}), PlaceType::kFolder);
  EXPECT_EQ(PlaceTypeOf({.type = "custom_model"}), PlaceType::kAny);
}

TEST(InputFault, SaysWhatToDoWithCredentialsThatDoNotDo) {
  spec::Input input = Images(spec::CredentialKind::kAccountKey, "datastore.blobs");
  const absl::Status denied = absl::PermissionDeniedError("it refuses the key");
  EXPECT_THAT(InputFault(input, denied), HasSubstr("it refuses the key; give datastore blobs"));
  input.place->datastore.clear();
  EXPECT_THAT(InputFault(input, denied), HasSubstr("make a datastore of it"));
  EXPECT_EQ(InputFault(input, absl::NotFoundError("nothing is there")), "nothing is there");
}

TEST(OutputRequest, IsOfTheFolderThatItsFilesArePutInto) {
  spec::Output output{.type = "uri_file", .file = "m.pt"};
  output.place = {.kind = spec::StoreKind::kS3,
                  .container = "sets",
                  .path = "runs/${{name}}/m.pt",
                  .credential = spec::CredentialKind::kAccessKey,
                  .secret = "datastore.sets",
                  .datastore = "sets"};
  const std::map<std::string, std::string> secrets = {
      {"datastore.sets", R"({"access_key_id": "a", "secret_access_key": "b"})"}};
  const auto request = RequestFor(Operation::kPut, output, "blue", secrets);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->place.path, "runs/blue");
  EXPECT_EQ(request->credentials.secret_access_key, "b");
  output.place->path = "m.pt";
  EXPECT_EQ(RequestFor(Operation::kPut, output, "blue", secrets)->place.path, "");
  output.type = "uri_folder";
  EXPECT_EQ(RequestFor(Operation::kPut, output, "blue", secrets)->place.path, "m.pt");
  EXPECT_EQ(FolderOf("/m.pt"), "/");
}

TEST(OutputRequest, OfAnotherStoreThanItsCredentialsAreForIsRefused) {
  spec::Output output;
  output.place = {.kind = spec::StoreKind::kS3,
                  .container = "sets",
                  .credential = spec::CredentialKind::kAccessKey,
                  .secret = "datastore.sets",
                  .datastore = "sets"};
  const auto request =
      RequestFor(Operation::kPut, output, "blue",
                 {{"datastore.sets",
                   R"({"access_key_id": "a", "secret_access_key": "b", "store": "s3 other"})"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(request.status()));
  EXPECT_NE(request.status().message().find("the job is to write to s3 sets"), std::string::npos)
      << request.status();
}

TEST(OutputRequest, SaysWhatToDoAboutAFault) {
  spec::Output output;
  output.place.emplace().datastore = "sets";
  output.place->kind = spec::StoreKind::kS3;
  const auto fault = [&](const absl::Status& status, FaultSource source) {
    return OutputFault(output, WithSource(status, source));
  };
  const absl::Status no = absl::PermissionDeniedError("no");
  const absl::Status gone = absl::NotFoundError("none");
  const absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_EQ(fault(no, FaultSource::kStore),
            "no; give datastore sets credentials that may write to it: tutti datastore create "
            "--file FILE");
  EXPECT_EQ(fault(no, FaultSource::kLogin), fault(no, FaultSource::kStore));
  EXPECT_EQ(fault(gone, FaultSource::kStore),
            "none; make the container first, or correct the output's path");
  EXPECT_EQ(fault(full, FaultSource::kStore), "full; make room there");
  output.place->kind = spec::StoreKind::kLocal;
  EXPECT_THAT(fault(no, FaultSource::kStore), HasSubstr("let the user that runs the job write"));
  EXPECT_THAT(fault(gone, FaultSource::kStore), HasSubstr("mount the folder on every node"));
}

TEST(OutputRequest, GivesNoAdviceOnAStoreForWhatIsNotOfIt) {
  spec::Output output;
  output.place.emplace().datastore = "sets";
  output.place->kind = spec::StoreKind::kS3;
  for (const absl::Status& status : {absl::PermissionDeniedError("x"), absl::NotFoundError("x"),
                                     absl::AbortedError("x"), absl::ResourceExhaustedError("x")}) {
    EXPECT_EQ(OutputFault(output, status), "x") << "the service's, or of the program itself";
    const std::string of_file = OutputFault(output, WithSource(status, FaultSource::kDisk));
    EXPECT_THAT(of_file, AllOf(Not(HasSubstr("datastore")), Not(HasSubstr("container")),
                               Not(HasSubstr("make room"))));
  }
}

}  // namespace
}  // namespace tutti::storage
