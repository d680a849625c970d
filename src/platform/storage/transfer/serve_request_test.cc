// Covers: serve_request.cc, place_survey.cc, put_files.cc.
#include "platform/storage/transfer/serve_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/threads/retry_after.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/kept_list.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::storage {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
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
    const Attempts attempts{.sleep = [this](absl::Duration pause) {
      absl::MutexLock lock(&mutex_);
      pauses_.push_back(pause);
    }};
    return ServeRequest(store_, request_, attempts, [&](const AnswerLine& line) {
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
  absl::Mutex mutex_;
  std::vector<absl::Duration> pauses_;  // between attempts, which wait for none
};

TEST_F(ServeRequestTest, ListsAFolderByPathWithVersions) {
  const AnswerLine end = Serve(Operation::kList, "data");
  ASSERT_TRUE(std::holds_alternative<StorageDone>(end)) << ToJson(end);
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv", "a/y.txt", "b"));
  EXPECT_NE(objects_[0].etag, "");
  EXPECT_EQ(std::get<StorageDone>(end).bytes, 6);
  EXPECT_EQ(std::get<StorageDone>(end).digest, DigestOf(objects_, 0));
}

TEST_F(ServeRequestTest, BrowsesWithoutAskingForVersions) {
  int opened = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    opened += call == "open";
    return absl::OkStatus();
  });
  const AnswerLine all = Serve(Operation::kBrowse, "data");
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv", "a/y.txt", "b"));
  EXPECT_EQ(std::get<StorageDone>(all).bytes, 6);
  EXPECT_FALSE(std::get<StorageDone>(all).is_file);
  request_.recursive = false;
  Serve(Operation::kBrowse, "data");
  EXPECT_THAT(Paths(), ElementsAre("a/", "b"));
  EXPECT_EQ(opened, 0);
  const AnswerLine one = Serve(Operation::kBrowse, "data/b");
  EXPECT_THAT(Paths(), ElementsAre("b"));
  EXPECT_TRUE(std::get<StorageDone>(one).is_file);
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kBrowse, "nothing"))));
}

TEST_F(ServeRequestTest, WhatJsonCannotNameIsToldAsLeftOut) {
  store_.Set("data/bad\xffname", "1");
  request_.tells_left_out = true;
  const AnswerLine end = Serve(Operation::kBrowse, "data");
  EXPECT_EQ(std::get<StorageDone>(end).objects, 3);
  ASSERT_EQ(objects_.size(), 4u);
  EXPECT_EQ(objects_[3].path, "bad\xffname");
  EXPECT_EQ(objects_[3].left_out, "its name is not UTF-8");
}

TEST_F(ServeRequestTest, AListMayGoIntoAFileInTheAnswersPlace) {
  request_.list_file = folder_.path() / "list";
  const AnswerLine end = Serve(Operation::kBrowse, "data");
  ASSERT_TRUE(ErrorOf(end).ok()) << ErrorOf(end);
  EXPECT_THAT(Paths(), ElementsAre());
  const auto& done = std::get<StorageDone>(end);
  EXPECT_EQ(done.objects, 3);
  const auto kept = ReadKeptList(request_.list_file);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->base, "data");
  EXPECT_EQ(kept->objects.size(), 3u);
  EXPECT_EQ(std::get<StorageDone>(Serve(Operation::kBrowse, "data")).digest, done.digest);
  store_.Set("data/b", "22", /*modified=*/1000);
  EXPECT_NE(std::get<StorageDone>(Serve(Operation::kBrowse, "data")).digest, done.digest);
}

TEST_F(ServeRequestTest, AListThatTheDiskDoesNotTakeFailsNothing) {
  request_.list_file = folder_.path() / "list";
  const std::string digest = std::get<StorageDone>(Serve(Operation::kBrowse, "data")).digest;
  request_.list_file = folder_.path() / "none/list";
  const AnswerLine end = Serve(Operation::kBrowse, "data");
  ASSERT_TRUE(ErrorOf(end).ok()) << ErrorOf(end);
  EXPECT_EQ(std::get<StorageDone>(end).digest, digest);
}

TEST_F(ServeRequestTest, TakesNamedObjectsWithoutAList) {
  bool listed = false;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    listed = listed || call == "list";
    return absl::OkStatus();
  });
  request_.files = {"a/y.txt", "b"};
  ASSERT_TRUE(ErrorOf(Serve(Operation::kFetch, "data")).ok());
  EXPECT_EQ(base::ReadFile(folder_.path() / "a/y.txt").value(), "333");
  EXPECT_EQ(base::ReadFile(folder_.path() / "b").value(), "22");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "a/x.csv"));
  ASSERT_TRUE(ErrorOf(Serve(Operation::kRemove, "data")).ok());
  EXPECT_THAT(store_.Paths(), ElementsAre("data/a/x.csv"));
  EXPECT_FALSE(listed);
  request_.files = {"../x"};
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(Serve(Operation::kRemove, "data"))));
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
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kList, "data/[ab]/*.csv"))));
  request_.place.has_classes = true;
  Serve(Operation::kList, "data/[ab]/*.csv");
  EXPECT_THAT(Paths(), ElementsAre("a/x.csv"));
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

TEST_F(ServeRequestTest, SaysWhatIsAtAPathOfThisMachineThatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", folder_.path() / "dangling");
  std::filesystem::create_symlink("itself", folder_.path() / "itself");
  request_.place = {};
  const auto what = [&](const char* name) {
    const absl::Status error = ErrorOf(Serve(Operation::kBrowse, folder_.path() / name));
    EXPECT_TRUE(absl::IsNotFound(error)) << error;
    return std::string(error.message());
  };
  EXPECT_THAT(what("pipe"), HasSubstr(": it is a pipe"));
  EXPECT_THAT(what("dangling"), HasSubstr(": it is a link to nothing"));
  EXPECT_THAT(what("itself"), HasSubstr(": it is a link: Too many levels of symbolic links"));
  EXPECT_THAT(what("none"), HasSubstr(": there is no such path"));
}

TEST_F(ServeRequestTest, FetchesAFolder) {
  EXPECT_TRUE(std::holds_alternative<StorageDone>(Serve(Operation::kFetch, "data")));
  EXPECT_EQ(*base::ReadFile(folder_.path() / "a/y.txt"), "333");
}

TEST_F(ServeRequestTest, SaysWhatIsLackingOnlyToWhoUnderstandsIt) {
  store_.set_hook([](absl::string_view call, const std::string&, int64_t) {
    return call == "read" ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
  });
  for (const bool tells : {false, true}) {
    request_.tells_lacking = tells;
    const std::string end = ToJson(Serve(Operation::kFetch, "data"));
    const auto read = AnswerLineFromJson(end);
    ASSERT_TRUE(read.ok()) << end;
    EXPECT_TRUE(absl::IsResourceExhausted(ErrorOf(*read))) << end;
    EXPECT_EQ(end.find("\"lacking\"") != std::string::npos, tells) << end;
    EXPECT_EQ(LackingOf(ErrorOf(*read)) > 0, tells);
  }
}

TEST_F(ServeRequestTest, WaitsAsLongAsABusyStoreAsksAndTellsItToWhoUnderstands) {
  absl::Duration asked = absl::Seconds(20);
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call != "read") return absl::OkStatus();
    return base::WithRetryAfter(absl::UnavailableError("busy"), asked);
  });
  for (const bool tells : {false, true}) {
    request_.tells_retry_after = tells;
    pauses_.clear();
    const std::string end = ToJson(Serve(Operation::kFetch, "data/b"));
    EXPECT_THAT(pauses_, AllOf(Not(IsEmpty()), Each(Ge(asked))));
    const auto read = AnswerLineFromJson(end);
    ASSERT_TRUE(read.ok()) << end;
    EXPECT_EQ(base::RetryAfterOf(ErrorOf(*read)), tells ? asked : absl::ZeroDuration()) << end;
  }
}

// A launcher says then what its job waits for.
TEST_F(ServeRequestTest, WhoWaitsItselfIsToldAtOnceOfALongTime) {
  store_.set_hook([](absl::string_view call, const std::string&, int64_t) {
    if (call != "read") return absl::OkStatus();
    return base::WithRetryAfter(absl::UnavailableError("busy"), absl::Seconds(50));
  });
  Serve(Operation::kFetch, "data/b");
  EXPECT_THAT(pauses_,
              AllOf(Not(IsEmpty()), Each(AllOf(Ge(absl::Seconds(30)), Le(absl::Seconds(38))))));
  pauses_.clear();
  request_.tells_retry_after = true;
  EXPECT_EQ(base::RetryAfterOf(ErrorOf(Serve(Operation::kFetch, "data/b"))), absl::Seconds(50));
  EXPECT_THAT(pauses_, IsEmpty());
}

TEST_F(ServeRequestTest, WhoWaitsForALookIsAnsweredSoonerThanABusyStoreAsks) {
  store_.set_hook([](absl::string_view, const std::string&, int64_t) {
    return base::WithRetryAfter(absl::UnavailableError("busy"), absl::Seconds(50));
  });
  Serve(Operation::kStat, "data/b");
  EXPECT_THAT(pauses_, ElementsAre(AllOf(Ge(absl::Seconds(2)), Le(absl::Seconds(3)))));
  for (const Operation operation : {Operation::kDigest, Operation::kBrowse}) {
    pauses_.clear();
    Serve(operation, "data");
    EXPECT_THAT(pauses_, AllOf(Not(IsEmpty()), Each(Le(absl::Seconds(4)))));
  }
}

TEST_F(ServeRequestTest, PutsASmallFileOfS3WithoutAskingWhetherItIsThere) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "one", "1").ok());
  std::vector<std::string> calls;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    calls.push_back(absl::StrCat(call, " ", path));
    return absl::OkStatus();
  });
  Serve(Operation::kPut, "out");
  EXPECT_THAT(calls, ElementsAre("put out/one", "open out/one"));
}

TEST_F(ServeRequestTest, PutsFilesButNotThoseThatAreThere) {
  request_.place.kind = spec::StoreKind::kAzureBlob;
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

// S3 also refuses HEAD of an object that does not exist, without the right to list.
TEST_F(ServeRequestTest, AProbeWritesNothingAboveALocalStoresRoot) {
  request_.place.kind = spec::StoreKind::kLocal;
  request_.place.root = (folder_.path() / "mount/share").native();  // the mount is missing
  store_.set_hook([](absl::string_view call, const std::string& path, int64_t) {
    EXPECT_NE(call, "put") << path;
    return absl::OkStatus();
  });
  const absl::Status missing = ErrorOf(Serve(Operation::kProbe, request_.place.root + "/runs/x"));
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("mount/share"));
  ASSERT_TRUE(base::MakeDirectories(request_.place.root).ok());
  std::string written;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "put") written = path;
    return absl::OkStatus();
  });
  Serve(Operation::kProbe, request_.place.root + "/runs/x");
  EXPECT_EQ(written, request_.place.root + "/.tutti-probe");
}

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

TEST_F(ServeRequestTest, ANameThatTheStoreDoesNotTakeIsToldFromAContainerThatIsNotThere) {
  for (const char* name : {"a\nb", "c"}) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, name).ok());
  }
  bool is_there = true;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    return call == "put" && (!is_there || path == "out/a\nb") ? absl::NotFoundError("nothing")
                                                              : absl::OkStatus();
  });
  const AnswerLine end = Serve(Operation::kPut, "out");
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(end))) << ErrorOf(end);
  EXPECT_EQ(std::get<StorageFailure>(end).path, "a\nb");
  EXPECT_THAT(Paths(), ElementsAre("c"));
  EXPECT_THAT(store_.Paths(), ElementsAre("data/a/x.csv", "data/a/y.txt", "data/b", "out/c"));
  is_there = false;
  EXPECT_TRUE(absl::IsNotFound(ErrorOf(Serve(Operation::kPut, "out"))));
}

// A store that takes a file which grows faster than it is sent: its put would have no end.
class EndlessPuts final : public ObjectStore {
 public:
  absl::Status Put(const std::string&, const std::filesystem::path&,
                   const SentListener& sent) override {
    for (int block = 0; block < 100; ++block) {
      if (const absl::Status goes_on = sent(1); !goes_on.ok()) return goes_on;
    }
    return absl::InternalError("nobody has ended it");
  }
  absl::StatusOr<PathKind> KindOf(const std::string&) override { return PathKind::kNothing; }
  absl::StatusOr<std::vector<StoredObject>> List(const std::string&, bool) override {
    return std::vector<StoredObject>();
  }
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string&) override {
    return absl::NotFoundError("nothing");
  }
  absl::Status Remove(const std::string&) override { return absl::OkStatus(); }
  absl::Status RemoveFolder(const std::string&) override { return absl::OkStatus(); }
};

TEST_F(ServeRequestTest, AFileThatGrowsFasterThanItIsSentEndsAsOneThatHasChanged) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "log", "1234").ok());
  EndlessPuts store;
  request_.operation = Operation::kPut;
  const absl::Status put = ErrorOf(ServeRequest(store, request_, {}, [](const AnswerLine&) {}));
  EXPECT_TRUE(absl::IsAborted(put)) << put;
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
