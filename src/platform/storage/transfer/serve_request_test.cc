// Covers: serve_request.cc, place_survey.cc, put_files.cc.
#include "platform/storage/transfer/serve_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ServeRequestTest : public ::testing::Test {
 protected:
  ServeRequestTest() {
    request_.place = {spec::StoreKind::kS3, "", "bucket"};
    request_.folder = folder_.path();
    request_.connections = 2;
    store_.Set("data/b", "22");
    store_.Set("data/a/x.csv", "1");
    store_.Set("data/a/y.txt", "333");
  }
  AnswerLine Serve(Operation operation, const std::string& path) {
    request_.operation = operation;
    request_.place.path = path;
    objects_.clear();
    return ServeRequest(store_, request_, {}, [&](const AnswerLine& line) {
      if (const auto* object = std::get_if<StoredObject>(&line)) objects_.push_back(*object);
    });
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const StoredObject& object : objects_) paths.push_back(object.path);
    return paths;
  }
  static absl::Status ErrorOf(const AnswerLine& line) {
    const auto* failure = std::get_if<StorageFailure>(&line);
    return failure == nullptr ? absl::OkStatus() : failure->status;
  }

  MemoryStore store_;
  base::TemporaryDirectory folder_;
  StorageRequest request_;
  std::vector<StoredObject> objects_;
};

TEST_F(ServeRequestTest, ListsAFolderByPathWithVersions) {
  const AnswerLine end = Serve(Operation::kList, "data");
  ASSERT_TRUE(std::holds_alternative<StorageDone>(end)) << ToJson(end);
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv", "a/y.txt", "b"));
  EXPECT_NE(objects_[0].etag, "");
  EXPECT_EQ(std::get<StorageDone>(end).bytes, 6);
  EXPECT_EQ(std::get<StorageDone>(end).digest, DigestOf(objects_, 0));
}

TEST_F(ServeRequestTest, GivesADigestAndAsksForYoungObjectsAlone) {
  std::vector<std::string> opened;
  request_.connections = 1;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "open") opened.push_back(path);
    return absl::OkStatus();
  });
  store_.Set("data/a/x.csv", "1", 99);
  store_.Set("data/a/y.txt", "333", 100);
  request_.settled_before = 100;
  const auto digest = [&](Operation operation) {
    opened.clear();
    return std::get<StorageDone>(Serve(operation, "data"));
  };
  const StorageDone first = digest(Operation::kDigest);
  EXPECT_EQ(first.bytes, 6);
  EXPECT_TRUE(objects_.empty());
  EXPECT_THAT(opened, ElementsAre("data/a/y.txt", "data/b")) << "what is old is known by its time";
  EXPECT_EQ(digest(Operation::kList).digest, first.digest);
  EXPECT_EQ(digest(Operation::kFetch).digest, first.digest);
  store_.Set("data/a/x.csv", "2", 98);
  EXPECT_NE(digest(Operation::kDigest).digest, first.digest);
}

TEST_F(ServeRequestTest, ListsWhatAPatternMatches) {
  request_.place.is_pattern = true;
  Serve(Operation::kList, "data/*/*.csv");
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv"));
  Serve(Operation::kList, "data/*");
  EXPECT_THAT(Paths(), ElementsAre("b"));
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kList, "data/*.png"))));
}

TEST_F(ServeRequestTest, TellsAFileFromAFolder) {
  Serve(Operation::kStat, "data/b");
  EXPECT_THAT(Paths(), ElementsAre("b"));
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kStat, "data")));
  EXPECT_TRUE(objects_.empty());
  request_.type = PlaceType::kFile;
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Serve(Operation::kStat, "data"))));
  request_.type = PlaceType::kFolder;
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Serve(Operation::kStat, "data/b"))));
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kStat, "elsewhere"))));
}

TEST_F(ServeRequestTest, FetchesAFolder) {
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kFetch, "data")));
  EXPECT_EQ(*base::ReadFile(folder_.path() / "a/y.txt"), "333");
}

TEST_F(ServeRequestTest, PutsFilesButNotThoseThatAreThere) {
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / "d").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "d/one", "1").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "two", "22").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / ".tutti-objects", "").ok());
  std::vector<std::string> put;
  request_.connections = 1;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "put") put.push_back(path);
    return absl::OkStatus();
  });
  const AnswerLine end = Serve(Operation::kPut, "out");
  ASSERT_TRUE(std::holds_alternative<StorageDone>(end)) << ToJson(end);
  EXPECT_THAT(put, ElementsAre("out/d/one", "out/two"));
  EXPECT_EQ(store_.Content("out/two"), "22");
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "two", "33").ok());
  Serve(Operation::kPut, "out");
  EXPECT_THAT(put, ElementsAre("out/d/one", "out/two", "out/two"));
  EXPECT_EQ(store_.Content("out/two"), "33");
}

TEST_F(ServeRequestTest, PutsNamedFilesAloneAndTellsWhatTheStoreHas) {
  for (const char* name : {"one", "two", "three"}) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, name).ok());
  }
  request_.files = {"one", "three"};
  const AnswerLine end = Serve(Operation::kPut, "out");
  ASSERT_TRUE(std::holds_alternative<StorageDone>(end)) << ToJson(end);
  EXPECT_EQ(std::get<StorageDone>(end).objects, 2);
  ASSERT_THAT(Paths(), ElementsAre("one", "three"));
  EXPECT_EQ(objects_[1].bytes, 5);
  EXPECT_NE(objects_[1].etag, "");
  EXPECT_EQ(store_.Content("out/two"), "");
  Serve(Operation::kPut, "out");
  EXPECT_THAT(Paths(), ElementsAre("one", "three")) << "what is there already is told, too";
}

TEST_F(ServeRequestTest, TellsWhatWasPutBeforeAnError) {
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, name).ok());
  }
  request_.connections = 1;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    return call == "put" && path == "out/two" ? absl::PermissionDeniedError("no")
                                              : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsPermissionDenied(ErrorOf(Serve(Operation::kPut, "out"))));
  EXPECT_THAT(Paths(), ElementsAre("one"));
}

TEST_F(ServeRequestTest, PutsNoFileFromOutsideOfTheFolder) {
  for (const char* name : {"../x", "/etc/hostname", "a//b", ".tutti-objects"}) {
    request_.files = {name};
    EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Serve(Operation::kPut, "out")))) << name;
  }
  request_.files = {"nothing"};
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kPut, "out"))));
  EXPECT_THAT(store_.Paths(), ElementsAre("data/a/x.csv", "data/a/y.txt", "data/b"));
}

TEST_F(ServeRequestTest, SaysThatAFileWasWrittenToWhileItWasPut) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "one", "1").ok());
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call != "put") return absl::OkStatus();
    return base::WriteFileAtomic(folder_.path() / "one", "longer");
  });
  EXPECT_TRUE(absl::IsAborted(ErrorOf(Serve(Operation::kPut, "out"))));
}

TEST_F(ServeRequestTest, TriesWhetherOneMayWriteAndLeavesNothing) {
  std::vector<std::string> calls;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "put" || call == "remove") calls.push_back(path);
    return absl::OkStatus();
  });
  const std::vector<std::string> before = store_.Paths();
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kProbe, "data/a/new/model")));
  EXPECT_THAT(calls, ElementsAre("data/a/new/model/.tutti-probe", "data/a/new/model/.tutti-probe"));
  EXPECT_EQ(store_.Paths(), before);
  calls.clear();
  request_.place.kind = spec::StoreKind::kLocal;
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kProbe, "data/a/new/model")));
  EXPECT_THAT(calls, ElementsAre("data/a/.tutti-probe", "data/a/.tutti-probe"))
      << "it makes no folder";
  store_.set_hook([](absl::string_view call, const std::string&, int64_t) {
    return call == "put" ? absl::PermissionDeniedError("no") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsPermissionDenied(ErrorOf(Serve(Operation::kProbe, "data"))));
}

// Of S3: without the right to list, HEAD of what is not there is refused as well.
TEST_F(ServeRequestTest, AKeyThatMayOnlyWriteBelowOnePrefixDoes) {
  store_.set_hook([](absl::string_view call, const std::string& path, int64_t) {
    if (call == "put" && path.rfind("data/mine/", 0) == 0) return absl::OkStatus();
    return absl::PermissionDeniedError("it may not do this");
  });
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "one", "1").ok());
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kProbe, "data/mine/x")));
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kPut, "data/mine/x")));
  EXPECT_EQ(store_.Content("data/mine/x/one"), "1");
  ASSERT_THAT(Paths(), ElementsAre("one"));
  EXPECT_EQ(objects_[0].bytes, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(ErrorOf(Serve(Operation::kProbe, "data/other"))));
}

TEST_F(ServeRequestTest, AFileThatIsRefusedKeepsNoOtherFromItsTurn) {
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, name).ok());
  }
  request_.connections = 1;
  store_.set_hook([](absl::string_view call, const std::string& path, int64_t) {
    return call == "put" && (path == "out/a" || path == "out/c")
               ? absl::PermissionDeniedError("not this one")
               : absl::OkStatus();
  });
  request_.files = {"a", "b", "c", "d", "gone"};
  const AnswerLine end = Serve(Operation::kPut, "out");
  EXPECT_THAT(Paths(), ElementsAre("b", "d"));
  EXPECT_TRUE(absl::IsPermissionDenied(ErrorOf(end)));
  EXPECT_THAT(std::string(ErrorOf(end).message()),
              HasSubstr("object \"a\": not this one; and 2 more objects"));
}

TEST_F(ServeRequestTest, AStoreThatIsAwayEndsThePutAtOnce) {
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, name).ok());
  }
  request_.connections = 1;
  int puts = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call != "put") return absl::OkStatus();
    ++puts;
    return absl::ResourceExhaustedError("full");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(ErrorOf(Serve(Operation::kPut, "out"))));
  EXPECT_EQ(puts, 1);
}

TEST_F(ServeRequestTest, APutThatIsToldToEndDoesSoBetweenTwoBlocks) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "one", "1").ok());
  std::atomic<bool> cancelled = false;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call == "put") cancelled = true;
    return absl::OkStatus();
  });
  request_.operation = Operation::kPut;
  request_.place.path = "out";
  ServeRequest(store_, request_, {.cancelled = &cancelled}, [](const AnswerLine&) {});
  EXPECT_EQ(store_.Content("out/one"), "") << "it was given back";
}

TEST_F(ServeRequestTest, WhatAPutOrAProbeHasLeftIsNoObjectOfThePlace) {
  store_.Set("data/.tutti-probe", "");
  store_.Set("data/a/.tutti-put-0123", "half");
  Serve(Operation::kList, "data");
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv", "a/y.txt", "b"));
}

TEST_F(ServeRequestTest, NamesAFileThatCannotBePut) {
  std::filesystem::create_symlink("/nowhere", folder_.path() / "dangling");
  const AnswerLine end = Serve(Operation::kPut, "out");
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(end)));
  EXPECT_EQ(std::get<StorageFailure>(end).path, "dangling");
}

TEST_F(ServeRequestTest, RemovesWhatIsBelowThePathAlone) {
  store_.Set("database", "stays");
  Serve(Operation::kRemove, "data");
  EXPECT_THAT(store_.Paths(), ElementsAre("database"));
}

TEST(FailureOf, NamesThePlaceOnOneLineAndNoSecret) {
  StorageRequest request;
  request.place = {spec::StoreKind::kAzureBlob, "acme", "c", "", "", "p"};
  request.credentials.sas = "sv=1&sig=hush";
  const StorageFailure failure = FailureOf(
      AboutObject(absl::UnknownError("https://x?sv=1&sig=hush\nis away"), "a/b"), request);
  EXPECT_EQ(failure.path, "a/b");
  const std::string message(failure.status.message());
  EXPECT_THAT(message, HasSubstr("container \"c\" of Azure account \"acme\", path \"p\""));
  EXPECT_THAT(message, HasSubstr("object \"a/b\""));
  EXPECT_THAT(message, Not(HasSubstr("hush")));
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace tutti::storage
