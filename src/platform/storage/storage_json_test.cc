#include "platform/storage/storage_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"

namespace tutti::storage {
namespace {

using ::testing::HasSubstr;

StorageRequest SomeRequest() {
  StorageRequest request;
  request.operation = Operation::kFetch;
  request.place = {spec::StoreKind::kS3,
                   "",
                   "bucket",
                   "http://127.0.0.1:9",
                   "eu",
                   "a/*.csv",
                   true,
                   spec::CredentialKind::kAccessKey};
  request.credentials.kind = spec::CredentialKind::kAccessKey;
  request.credentials.access_key_id = "id";
  request.credentials.secret_access_key = "secret";
  request.folder = "/tmp/x";
  request.connections = 3;
  request.type = PlaceType::kFolder;
  request.place.has_classes = true;
  request.settled_before = 1700000000;
  request.files = {"a", "b/c"};
  request.recursive = false;
  request.list_file = "/jobs/j/list-x";
  request.formers = {{"/tmp/before", "/tmp/objects", "a", true}, {"/tmp/other", "/tmp/others", ""}};
  return request;
}

TEST(StorageRequestJson, IsReadBack) {
  const std::string text = ToJson(SomeRequest());
  const auto back = StorageRequestFromJson(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), text);
  EXPECT_EQ(back->place.path, "a/*.csv");
  EXPECT_TRUE(back->place.is_pattern);
  EXPECT_TRUE(back->place.has_classes);
  EXPECT_EQ(back->credentials.secret_access_key, "secret");
  EXPECT_EQ(back->connections, 3);
  EXPECT_EQ(back->type, PlaceType::kFolder);
  EXPECT_EQ(back->settled_before, 1700000000);
  EXPECT_EQ(back->files, (std::vector<std::string>{"a", "b/c"}));
  EXPECT_FALSE(back->recursive);
  EXPECT_EQ(back->list_file, "/jobs/j/list-x");
  ASSERT_EQ(back->formers.size(), 2u);
  EXPECT_EQ(back->formers[0].folder, "/tmp/before");
  EXPECT_EQ(back->formers[0].objects, "/tmp/objects");
  EXPECT_EQ(back->formers[0].base, "a");
  EXPECT_TRUE(back->formers[0].verify && !back->formers[1].verify);
}

TEST(GrantJson, IsReadBack) {
  const Grant grant{SomeRequest().place, SomeRequest().credentials, 1700000000};
  const auto back = GrantFromJson(ToJson(grant));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(grant));
  EXPECT_EQ(back->expires, 1700000000);
  EXPECT_FALSE(GrantFromJson("{}").ok());
  EXPECT_FALSE(GrantFromJson(R"({"place": 1, "credentials": {}, "expires": 1})").ok());
}

TEST(StorageRequestJson, TakesTheOneFormerFolderOfAnEarlierLauncher) {
  StorageRequest request = SomeRequest();
  request.formers.clear();
  std::string text = ToJson(request);
  text.insert(1, R"("former":{"folder":"/tmp/before","objects":"/tmp/objects"},)");
  const auto back = StorageRequestFromJson(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(request));
}

TEST(StorageRequestJson, NamesTheRootOfALocalStoreToWhoWritesThereAlone) {
  StorageRequest request = SomeRequest();
  request.place.root = "/mnt/share";
  EXPECT_EQ(ToJson(request).find("/mnt/share"), std::string::npos);
  for (const Operation operation : {Operation::kPut, Operation::kProbe}) {
    request.operation = operation;
    const auto back = StorageRequestFromJson(ToJson(request));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->place.root, "/mnt/share");
  }
}

TEST(StorageRequestJson, HasThePeersOfAFetch) {
  StorageRequest request = SomeRequest();
  request.operation = Operation::kFetch;
  request.peers =
      Peers{.node = 1, .addresses = {"10.0.0.1", "10.0.0.2"}, .port = 7002, .token = "t"};
  const std::string text = ToJson(request);
  const auto back = StorageRequestFromJson(text);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_TRUE(back->peers.has_value());
  EXPECT_EQ(back->peers->addresses, request.peers->addresses);
  EXPECT_EQ(ToJson(*back), text);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"node\":1", "\"node\":2"}, {"7002", "70020"}, {"\"token\":\"t\"", "\"token\":\"\""}};
  for (const auto& [from, to] : changes) {
    EXPECT_FALSE(StorageRequestFromJson(absl::StrReplaceAll(text, {{from, to}})).ok()) << to;
  }
}

TEST(StorageRequestJson, NamesTheFieldThatIsWrongAndNeverItsValue) {
  const std::string text = ToJson(SomeRequest());
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"fetch\"", "\"copy\""},
      {"\"connections\":3", "\"connections\":0"},
      {"\"s3\"", "\"ftp\""},
      {"\"/tmp/x\"", "\"x\""},
      {"\"secret\"", "7"},
      {"\"pattern\":true", "\"pattern\":1"},
      {"\"region\"", "\"regions\""},
      {"\"container\":\"bucket\"", "\"container\":\"\""},
      {"\"/tmp/objects\"", "\"objects\""},
      {"\"b/c\"", "7"},
      {"\"settled_before\":17", "\"settled_before\":-17"},
      {"\"type\":\"folder\"", "\"type\":\"disk\""}};
  for (const auto& [from, to] : changes) {
    const std::string changed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(changed, text) << from;
    const auto request = StorageRequestFromJson(changed);
    EXPECT_TRUE(absl::IsInvalidArgument(request.status())) << changed;
  }
  const auto no_place = StorageRequestFromJson(R"({"operation": "stat", "credentials": {}})");
  EXPECT_THAT(std::string(no_place.status().message()), HasSubstr("place"));
  EXPECT_FALSE(StorageRequestFromJson("[1]").ok());
}

TEST(AnswerLineJson, IsReadBack) {
  const std::vector<AnswerLine> lines = {
      StoredObject{"a/ä", 7, "\"e\"", "0f", 1700000000.5}, StorageProgress{1, 2, 3, 4},
      StorageDone{5, 6, "abc"}, StorageFailure{absl::AbortedError("it has changed"), "a/b"}};
  for (const AnswerLine& line : lines) {
    const auto back = AnswerLineFromJson(ToJson(line));
    ASSERT_TRUE(back.ok()) << ToJson(line) << back.status();
    EXPECT_EQ(ToJson(*back), ToJson(line));
    EXPECT_EQ(back->index(), line.index());
  }
  EXPECT_EQ(std::get<StoredObject>(*AnswerLineFromJson(ToJson(lines[0]))),
            std::get<StoredObject>(lines[0]));
}

TEST(AnswerLineJson, RefusesWhatIsNone) {
  for (const char* text :
       {"", "{}", "3", R"({"object": {"path": 3}})", R"({"done": {}, "object": {}})",
        R"({"done": {"objects": -1}})", R"({"news": {}})", R"({"object": {"more": 1}})",
        R"({"object": {"modified": 1e300}})"}) {
    EXPECT_FALSE(AnswerLineFromJson(text).ok()) << text;
  }
}

TEST(ErrorKind, GoesWithACodeAndBack) {
  for (const char* kind :
       {"credentials", "not_found", "network", "disk_full", "changed", "damaged", "usage"}) {
    EXPECT_EQ(ErrorKind(absl::Status(CodeOfErrorKind(kind), "x")), kind);
  }
  EXPECT_EQ(ErrorKind(absl::FailedPreconditionError("x")), "refused");
  EXPECT_EQ(CodeOfErrorKind("refused"), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace tutti::storage
