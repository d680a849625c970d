// Covers: store_side.cc, storage_session.cc.
#include "platform/client/storage/store_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "platform/client/connection/connection_fake.h"
#include "platform/client/storage/storage_session.h"
#include "spec/data/datastore.h"

namespace tutti::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Stands for tutti-storage: keeps what it is asked, and answers with what lies beside it.
constexpr char kProgram[] = "#!/bin/sh\ncat >\"$0.asked\"\ncat \"$0.answer\"\n";

class StoreSideTest : public ::testing::Test {
 protected:
  StoreSideTest() {
    const std::string program = folder_.path() / "storage";
    if (!base::WriteFileAtomic(program, kProgram).ok()) std::abort();
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    Answer(R"({"done": {"objects": 0, "bytes": 0}})");
  }
  ~StoreSideTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  void Answer(const std::string& lines) {
    if (!base::WriteFileAtomic(folder_.path() / "storage.answer", lines + "\n").ok()) std::abort();
  }
  std::string Asked() { return base::ReadFile(folder_.path() / "storage.asked").value(); }
  std::unique_ptr<StorageSide> Side(const std::string& text, const std::string& secret = "") {
    StorageAddress address = ParseStorageAddress(text, {}).value();
    address.place.secret = secret;
    address.place.datastore = secret.empty() ? "" : "sets";
    return StoreSideOf(
        address, fake_.connect(), [](const char*) { return ""; }, never_);
  }

  const base::TemporaryDirectory folder_;
  const std::atomic<bool> never_ = false;
  int granted_ = 0;
  FakeService fake_{[this](const http::ClientRequest&) {
    ++granted_;
    return FakeService::Answer{
        .chunks = {R"({"place":{"kind":"s3","container":"sets"},"credentials":{"kind":)"
                   R"("access_key","access_key_id":"ASIA","secret_access_key":"granted-secret",)"
                   R"("session_token":"t"},"expires":99999999999})"}};
  }};
};

TEST_F(StoreSideTest, ListsAsTheStoreHasIt) {
  Answer(R"({"object": {"path": "a", "bytes": 3, "etag": "", "modified": 17}}
{"object": {"path": "b/", "bytes": 0, "etag": ""}}
{"done": {"objects": 2, "bytes": 3}})");
  const auto listing = Side("s3://sets/d")->List(false);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_THAT(listing->objects, SizeIs(2));
  EXPECT_EQ(listing->base, "d");
  EXPECT_FALSE(listing->is_file);
  EXPECT_THAT(Asked(), AllOf(HasSubstr("\"browse\""), HasSubstr("\"recursive\":false")));
  Answer(R"({"done": {"objects": 1, "bytes": 3, "file": true}})");
  EXPECT_EQ(Side("s3://sets/d/e")->List(true)->base, "d");
  EXPECT_EQ(Side("s3://sets/d/e/*")->List(true)->base, "d/e");
}

TEST_F(StoreSideTest, AsksForAccessOnceAndAgainToWrite) {
  const auto side = Side("s3://sets/d", "datastore.sets");
  ASSERT_TRUE(side->List(true).ok());
  ASSERT_TRUE(side->Fetch("d", {"a"}, folder_.path(), {}).ok());
  EXPECT_EQ(granted_, 1);
  EXPECT_THAT(Asked(), AllOf(HasSubstr("granted-secret"), HasSubstr("\"files\":[\"a\"]")));
  ASSERT_TRUE(side->Remove("d", {"a"}).ok());
  EXPECT_EQ(granted_, 2);
  ASSERT_TRUE(side->Remove("d", {}).ok()) << "nothing is not all";
  ASSERT_TRUE(side->RemoveAll().ok());
  EXPECT_THAT(Asked(), Not(HasSubstr("files")));
  ASSERT_TRUE(Side("/tmp")->List(true).ok());
  EXPECT_EQ(granted_, 2) << "a folder needs no access";
}

TEST_F(StoreSideTest, SaysWhatToDoAndNeverASecret) {
  Answer(R"({"error": {"kind": "credentials", "message": "refused: granted-secret"}})");
  const absl::Status of_datastore = Side("s3://sets/d", "datastore.sets")->List(true).status();
  EXPECT_THAT(of_datastore.message(), AllOf(HasSubstr("s3://sets/d: "), Not(HasSubstr("granted")),
                                            HasSubstr("give datastore sets credentials")));
  EXPECT_THAT(Side("s3://sets/d")->List(true).status().message(),
              HasSubstr("asked for without credentials"));
}

TEST_F(StoreSideTest, ASessionKnowsTheNamesOfTheHome) {
  spec::Datastores stores;
  stores["photos"] = {.name = "photos",
                      .place = {.kind = spec::StoreKind::kS3, .container = "photos"}};
  ASSERT_TRUE(spec::WriteDatastores(folder_.path(), stores).ok());
  StorageSession session(fake_.connect(), folder_.path());
  const auto side = session.Open("azureml://datastores/photos/paths/a");
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_EQ((*side)->address().place.container, "photos");
  EXPECT_FALSE(session.Open("azureml://datastores/cats/paths/a").ok());
  EXPECT_FALSE(session.cancelled());
  ::raise(SIGTERM);
  EXPECT_TRUE(session.cancelled());
}

}  // namespace
}  // namespace tutti::client
