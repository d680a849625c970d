#include "platform/launch/outputs/output_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/launch/node/node_folders.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using storage::StorageRequest;
using storage::StoredObject;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// A store that takes files as tutti-storage does: those before the one that fails are there.
class OutputStoreTest : public ::testing::Test {
 protected:
  OutputStoreTest() {
    plan_.job_id = "blue";
    plan_.directory = (folder_.path() / "allocation").native();
    plan_.node_index = 1;
    plan_.outputs["model"].place = {.kind = spec::StoreKind::kS3,
                                    .container = "sets",
                                    .path = "runs/${{name}}",
                                    .credential = spec::CredentialKind::kAccessKey,
                                    .secret = "datastore.sets",
                                    .datastore = "sets"};
  }

  OutputStore Open() {
    auto opened = OutputStore::Open(
        plan_, "model",
        {.put =
             [this](const StorageRequest& request, const PutLimits&,
                    const std::function<void(const StoredObject&)>& object) {
               return Put(request, object);
             },
         .secrets = [this]() -> absl::StatusOr<SecretValues> {
           ++asked_for_secrets_;
           return SecretValues{
               {"datastore.sets", R"({"access_key_id": "a", "secret_access_key": "b"})"}};
         },
         .now = [this] { return time_; },
         .steady = [this] { return now_; }});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }

  absl::Status Put(const StorageRequest& request,
                   const std::function<void(const StoredObject&)>& object) {
    if (!of_store_.ok()) return of_store_;
    absl::Status first;
    for (const std::string& file : request.files) {
      const std::string path =
          request.place.path.empty() ? file : absl::StrCat(request.place.path, "/", file);
      ++tried_[path];
      if (path == refused_) {
        first.Update(storage::AboutObject(
            storage::WithSource(absl::PermissionDeniedError("the store does not let it"),
                                storage::FaultSource::kStore),
            file));
        continue;
      }
      auto content = base::ReadFile(request.folder / file);
      if (!content.ok()) return content.status();
      put_.push_back(path);
      objects_[path] = *std::move(content);
      if (on_put_) on_put_(path);
      if (object) object({.path = file, .bytes = 1, .etag = "e"});
    }
    return first;
  }

  void Write(const std::string& path, const std::string& content) {
    const fs::path file = NodeFolders(plan_.directory).outputs() / "model" / path;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, content).ok());
  }

  const base::TemporaryDirectory folder_;
  spec::LaunchPlan plan_;
  std::map<std::string, std::string> objects_;
  std::vector<std::string> put_;
  std::function<void(const std::string&)> on_put_;
  std::string refused_;
  absl::Duration now_ = absl::Hours(1);
  int asked_for_secrets_ = 0;
  absl::Time time_ = absl::FromUnixSeconds(4'000'000'000);  // what was written is long settled
  absl::Status of_store_;
  std::map<std::string, int> tried_;
  std::atomic<bool> cancelled_ = false;
  const PutLimits never_{cancelled_, base::Deadline::After(absl::Hours(1))};
};

TEST_F(OutputStoreTest, PutsAllAndLastTheManifestBesideTheOutput) {
  Write("weights.bin", "w");
  Write("logs/a.txt", "text");
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_EQ(objects_["runs/blue/weights.bin"], "w");
  EXPECT_EQ(objects_["runs/blue/logs/a.txt"], "text");
  ASSERT_EQ(put_.back(), "runs/blue.stored.node-1.json");
  const auto manifest = nlohmann::json::parse(objects_[put_.back()]);
  EXPECT_EQ(manifest["job"], "blue");
  EXPECT_EQ(manifest["whole"], true);
  ASSERT_EQ(manifest["files"].size(), 2u);
  EXPECT_EQ(manifest["files"][0]["path"], "logs/a.txt");
  EXPECT_EQ(manifest["files"][0]["bytes"], 4);
  EXPECT_EQ(manifest["files"][0]["sha256"],
            "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
  EXPECT_EQ(manifest["files"][0]["stored"], "2096-10-02T07:06:40Z");
}

TEST_F(OutputStoreTest, PutsAFileOnceItWasTheSameForAWhileAndAgainWhenItHasChanged) {
  OutputStore store = Open();
  Write("a", "1");
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_THAT(put_, ElementsAre()) << "it may be being written";
  now_ += absl::Seconds(8);
  Write("a", "12");
  ASSERT_TRUE(store.PutFinished(never_).ok());
  now_ += absl::Seconds(8);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_THAT(put_, ElementsAre()) << "it has changed 8 s ago";
  now_ += absl::Seconds(2);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_THAT(put_, ElementsAre("runs/blue/a"));
  now_ += absl::Hours(1);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_EQ(put_.size(), 1u) << "it is there";
  Write("a", "123");
  ASSERT_TRUE(store.PutFinished(never_).ok());
  now_ += absl::Seconds(19);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_EQ(put_.size(), 1u) << "one that changes is awaited longer";
  now_ += absl::Seconds(1);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  EXPECT_EQ(objects_["runs/blue/a"], "123");
}

TEST_F(OutputStoreTest, WhatFollowsAKilledLauncherSendsNothingAgain) {
  Write("a", "1");
  Write("b", "2");
  refused_ = "runs/blue/b";
  const absl::Status failed = Open().PutAll(never_);
  EXPECT_TRUE(absl::IsPermissionDenied(failed));
  EXPECT_THAT(std::string(failed.message()),
              HasSubstr("output \"model\": the store does not let it; give datastore sets "
                        "credentials that may write to it"));
  refused_.clear();
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_THAT(put_, ElementsAre("runs/blue/a", "runs/blue/b", "runs/blue.stored.node-1.json"));
}

TEST_F(OutputStoreTest, OneFileThatIsRefusedKeepsNoOtherFromItsTurn) {
  for (int i = 0; i < 600; ++i) Write(absl::StrCat("f", 1000 + i), "x");
  refused_ = "runs/blue/f1000";
  OutputStore store = Open();
  const absl::Status failed = store.PutAll(never_);
  EXPECT_TRUE(absl::IsPermissionDenied(failed)) << failed;
  EXPECT_EQ(put_.size(), 599u) << "those of later batches, too";
  EXPECT_EQ(store.Missing(), "1 file (f1000)");
}

TEST_F(OutputStoreTest, WhileTheJobRunsAFileThatIsRefusedIsTriedAtLongerAndLongerIntervals) {
  Write("a", "1");
  refused_ = "runs/blue/a";
  OutputStore store = Open();
  for (int second = 0; second < 100; ++second) {
    static_cast<void>(store.PutFinished(never_));
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(tried_[refused_], 4) << "after 10, 20, 40 and 80 s";
}

TEST_F(OutputStoreTest, AStoreThatIsAwayEndsItAtOnce) {
  for (int i = 0; i < 600; ++i) Write(absl::StrCat("f", 1000 + i), "x");
  of_store_ = storage::WithSource(absl::UnavailableError("the store cannot be reached"),
                                  storage::FaultSource::kStore);
  EXPECT_TRUE(absl::IsUnavailable(Open().PutAll(never_)));
  EXPECT_TRUE(put_.empty());
}

TEST_F(OutputStoreTest, AFolderThatCannotBeListedIsNoEmptyOne) {
  const fs::path outputs = NodeFolders(plan_.directory).outputs();
  ASSERT_TRUE(base::MakeDirectories(outputs).ok());
  fs::create_symlink("model", outputs / "model");  // ELOOP, whoever asks
  OutputStore store = Open();
  const absl::Status put = store.PutAll(never_);
  EXPECT_FALSE(put.ok());
  EXPECT_THAT(std::string(put.message()), HasSubstr("read outputs/model"));
  EXPECT_FALSE(store.HasUnstored().ok());
  EXPECT_TRUE(put_.empty()) << "a manifest would say that there is nothing";
}

TEST_F(OutputStoreTest, AFileOfTheSameContentIsNotPutAgainWhateverItsState) {
  Write("a", "same");
  ASSERT_TRUE(Open().PutAll(never_).ok());
  Write("a", "same");  // another inode, another time
  OutputStore store = Open();
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_EQ(tried_["runs/blue/a"], 1);
}

// The disk tells of the first write to a page alone, until it has taken that up.
TEST_F(OutputStoreTest, WhatIsWrittenToAMappedFileAfterItWasPutIsPutAtTheEnd) {
  Write("array.npy", "?????");
  Write("same.txt", "same");
  const auto opened =
      base::Open(NodeFolders(plan_.directory).outputs() / "model/array.npy", O_RDWR);
  ASSERT_TRUE(opened.ok()) << opened.status();
  void* const bytes = ::mmap(nullptr, 5, PROT_READ | PROT_WRITE, MAP_SHARED, opened->get(), 0);
  ASSERT_NE(bytes, MAP_FAILED);
  std::memcpy(bytes, "zeros", 5);
  OutputStore store = Open();
  ASSERT_TRUE(store.PutFinished(never_).ok());
  now_ += absl::Seconds(11);
  ASSERT_TRUE(store.PutFinished(never_).ok());
  ASSERT_EQ(objects_["runs/blue/array.npy"], "zeros");
  std::memcpy(bytes, "ones!", 5);
  ::munmap(bytes, 5);
  store.Doubt();
  EXPECT_TRUE(*store.HasUnstored());
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_EQ(objects_["runs/blue/array.npy"], "ones!");
  EXPECT_EQ(tried_["runs/blue/same.txt"], 1) << "which was read, and is the same";
  EXPECT_FALSE(*store.HasUnstored());
}

TEST_F(OutputStoreTest, WhatWasReadAsItWasWrittenIsReadOnceMoreByTheNextLauncher) {
  Write("a", "same");
  time_ = absl::Now();
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_TRUE(*Open().HasUnstored()) << "its state does not tell";
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_EQ(tried_["runs/blue/a"], 1) << "its content is the same";
}

TEST_F(OutputStoreTest, WhatWasBeingWrittenWhenItsProcessWasKilledIsLeftOutAndNamed) {
  Write("done", "whole");
  OutputStore store = Open();
  store.LeaveOutSince(absl::Now() + absl::Minutes(1));
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_EQ(objects_["runs/blue/done"], "whole");
  store.LeaveOutSince(absl::Now() - absl::Minutes(1));
  Write("half", "ha");
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_FALSE(objects_.contains("runs/blue/half"));
  const auto manifest = nlohmann::json::parse(objects_["runs/blue.stored.node-1.json"]);
  EXPECT_EQ(manifest["whole"], false);
  EXPECT_THAT(manifest["left_out"].dump(), HasSubstr("half (it was being written"));
}

TEST_F(OutputStoreTest, IsCancelledWhileItHashes) {
  Write("a", "1");
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Open().PutAll(never_)));
  EXPECT_TRUE(tried_.empty());
}

TEST_F(OutputStoreTest, AsksForCredentialsAnewWhereTheyAreRefusedAndNotAllTheTime) {
  Write("a", "1");
  OutputStore store = Open();
  of_store_ = storage::WithSource(absl::UnavailableError("away"), storage::FaultSource::kStore);
  for (int i = 0; i < 5; ++i) {
    now_ += absl::Minutes(10);
    EXPECT_FALSE(store.PutAll(never_).ok());
  }
  EXPECT_EQ(asked_for_secrets_, 1) << "others would not help";
  of_store_ =
      storage::WithSource(absl::PermissionDeniedError("expired"), storage::FaultSource::kLogin);
  for (int second = 0; second < 600; ++second) {
    now_ += absl::Seconds(1);
    EXPECT_FALSE(store.PutAll(never_).ok());
  }
  EXPECT_GE(asked_for_secrets_, 4);
  EXPECT_LE(asked_for_secrets_, 12);
  of_store_ = absl::OkStatus();
  EXPECT_TRUE(store.PutAll(never_).ok());
}

TEST_F(OutputStoreTest, AFileThatWasWrittenToWhileItWasPutIsPutOnceMore) {
  Write("a", "1");
  OutputStore store = Open();
  on_put_ = [&](const std::string& path) {
    if (absl::EndsWith(path, "/a")) Write("a", "longer");
    on_put_ = nullptr;
  };
  EXPECT_TRUE(absl::IsAborted(store.PutAll(never_)));
  EXPECT_TRUE(*store.HasUnstored());
  EXPECT_TRUE(store.PutAll(never_).ok());
  EXPECT_EQ(objects_["runs/blue/a"], "longer");
}

TEST_F(OutputStoreTest, AManifestThatMayNotBePutBesideTheOutputIsNoFailure) {
  Write("a", "1");
  refused_ = "runs/blue.stored.node-1.json";
  EXPECT_TRUE(Open().PutAll(never_).ok());
  EXPECT_THAT(put_, ElementsAre("runs/blue/a"));
}

TEST_F(OutputStoreTest, OfAFileAloneTheFileIsPutAtItsPath) {
  spec::Output& output = plan_.outputs["model"];
  output.type = "uri_file";
  output.file = "model.pt";
  output.place->path = "runs/model.pt";
  Write("model.pt", "m");
  Write("scratch", "s");
  OutputStore store = Open();
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_THAT(put_, ElementsAre("runs/model.pt", "runs/model.pt.stored.node-1.json"));
  EXPECT_EQ(store.LeftOut(), "1 file left out: scratch (the output is one file, model.pt)");
}

TEST_F(OutputStoreTest, AFileMayBeCalledAsItsJob) {
  spec::Output& output = plan_.outputs["model"];
  output.type = "uri_file";
  output.file = "${{name}}.pt";
  output.place->path = "runs/${{name}}.pt";
  Write("blue.pt", "m");
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_THAT(put_, ElementsAre("runs/blue.pt", "runs/blue.pt.stored.node-1.json"));
}

TEST_F(OutputStoreTest, WhatIsToldOfTheResultsIsNotToldOfTheStoreAgain) {
  Write("fine", "1");
  const fs::path output = NodeFolders(plan_.directory).outputs() / "model";
  ASSERT_EQ(::mkfifo((output / "pipe").c_str(), 0600), 0);
  fs::create_directory(output / "plots");
  OutputStore store = Open();
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_EQ(store.LeftOut(), "");
  const auto manifest = nlohmann::json::parse(objects_["runs/blue.stored.node-1.json"]);
  EXPECT_EQ(manifest["left_out"], nlohmann::json{"pipe (a pipe)"});
  Write(".tutti-objects", "2");
  ASSERT_TRUE(store.PutAll(never_).ok());
  EXPECT_THAT(store.LeftOut(), StartsWith("1 file left out: .tutti-objects ("));
}

TEST_F(OutputStoreTest, NamesThatNoObjectCanHaveAreLeftOutAndNamed) {
  Write("fine", "1");
  Write(".tutti-objects", "2");
  Write("bad\xff", "3");
  ASSERT_TRUE(Open().PutAll(never_).ok());
  const auto manifest = nlohmann::json::parse(objects_["runs/blue.stored.node-1.json"]);
  EXPECT_EQ(manifest["files"].size(), 1u);
  EXPECT_EQ(manifest["left_out"].size(), 2u);
}

TEST_F(OutputStoreTest, ManyFilesGoInBatchesOfWhichAFailureLosesNone) {
  for (int i = 0; i < 300; ++i) Write(absl::StrCat("f", 1000 + i), "x");
  refused_ = "runs/blue/f1299";
  EXPECT_FALSE(Open().PutAll(never_).ok());
  const size_t before = put_.size();
  refused_.clear();
  ASSERT_TRUE(Open().PutAll(never_).ok());
  EXPECT_EQ(put_.size(), 301u) << before << " were put before";
}

}  // namespace
}  // namespace tutti::launch
