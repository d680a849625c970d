#include "platform/launch/data/fetch_place.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/cache/cache_census.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using storage::Operation;
using storage::StorageRequest;
using storage::StorageResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A store with one container, which a fetch fills a folder from as the program does.
class Store {
 public:
  absl::StatusOr<StorageResult> Run(const StorageRequest& request) {
    requests.push_back(request);
    if (!fails.ok()) return fails;
    StorageResult result{.digest = Digest()};
    if (request.operation == Operation::kStat) {
      const bool is_file = objects.size() == 1 && objects.begin()->first == "model.pt";
      if (request.type == storage::PlaceType::kFile && !is_file) {
        return absl::NotFoundError("no file");
      }
    }
    for (const auto& [path, content] : objects) {
      result.bytes += static_cast<int64_t>(content.size());
    }
    if (request.operation == Operation::kFetch && disk_is_full && disk_is_full()) {
      return storage::WithLacking(absl::ResourceExhaustedError("the disk is full"), lacking);
    }
    if (request.operation == Operation::kFetch) {
      resumed.push_back(fs::exists(request.folder / ".tutti-objects"));
      if (on_fetch) on_fetch();
      result.digest = Digest();
      for (const auto& [path, content] : objects) {
        const fs::path file = request.folder / path;
        if (!base::MakeDirectories(file.parent_path()).ok()) std::abort();
        if (!base::WriteFileAtomic(file, content).ok()) std::abort();
      }
      if (!base::WriteFileAtomic(request.folder / ".tutti-objects", "{}").ok()) std::abort();
      ++fetches;
    }
    return result;
  }
  std::string Digest() const {
    std::string all;
    for (const auto& [path, content] : objects) absl::StrAppend(&all, path, "\n", content, "\n");
    return base::Hex(base::Sha256Of(all));
  }

  std::map<std::string, std::string> objects = {{"a.txt", "a"}, {"b/c.txt", "c"}};
  std::vector<StorageRequest> requests;
  std::function<void()> on_fetch;
  std::function<bool()> disk_is_full;
  int64_t lacking = 1;  // then
  absl::Status fails;
  std::vector<bool> resumed;  // whether each fetch found what an earlier one had left
  int fetches = 0;
};

class FetchPlaceTest : public ::testing::Test {
 protected:
  static spec::Input Folder(const std::string& type = "uri_folder", std::string path = "train") {
    spec::Input input{.type = type};
    input.place = {.kind = spec::StoreKind::kAzureBlob,
                   .account = "acme",
                   .container = "images",
                   .path = std::move(path),
                   .credential = spec::CredentialKind::kAccountKey,
                   .secret = "datastore.blobs",
                   .datastore = "blobs"};
    return input;
  }
  absl::StatusOr<fs::path> Fetch(const spec::Input& input) {
    auto fetched = FetchPlace(
        "data", input, {{"datastore.blobs", R"({"account_key": "a2V5"})"}}, cache_, cancelled_,
        [this](const StorageRequest& request, auto&&...) { return store_.Run(request); });
    if (!fetched.ok()) return fetched.status();
    if (holds_pins_) pins_.push_back(std::move(fetched->pin));
    return fetched->path;
  }
  static std::string Content(const fs::path& file) {
    return base::ReadFile(file, 1 << 20).value_or("?");
  }

  Store store_;
  const base::TemporaryDirectory folder_;
  DataCache cache_{.folder = folder_.path()};
  bool holds_pins_ = false;  // of what is fetched, as a job that reads it
  std::vector<base::UniqueFd> pins_;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(FetchPlaceTest, AFolderIsFetchedOnceAsLongAsTheStoreHasTheSame) {
  const auto first = Fetch(Folder());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->filename(), "train");
  EXPECT_EQ(Content(*first / "b/c.txt"), "c");
  EXPECT_FALSE(fs::exists(*first / ".tutti-objects")) << "a job that lists its input sees its data";
  EXPECT_EQ(store_.requests.back().credentials.account_key, "a2V5");
  EXPECT_EQ(*Fetch(Folder()), *first);
  EXPECT_EQ(store_.fetches, 1);
  store_.objects["a.txt"] = "new";
  const auto second = Fetch(Folder());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(Content(*second / "a.txt"), "new");
  EXPECT_EQ(Content(*first / "a.txt"), "a") << "a job may still read it";
  EXPECT_TRUE(store_.requests[1].formers.empty()) << "nothing was fetched before";
  ASSERT_EQ(store_.requests.back().formers.size(), 1u);
  const storage::FormerFolder& former = store_.requests.back().formers[0];
  EXPECT_EQ(former.folder, *first);
  EXPECT_TRUE(fs::exists(former.objects));
  EXPECT_EQ(former.base, "train");
  EXPECT_FALSE(former.verify) << "it has come in this start of the machine";
  EXPECT_EQ(store_.fetches, 2);
}

TEST_F(FetchPlaceTest, ADigestIsAskedForAndWhatIsOldIsKnownByItsTime) {
  const int64_t latest = absl::ToUnixSeconds(absl::Now()) - 15 * 60;
  ASSERT_TRUE(Fetch(Folder()).ok());
  ASSERT_EQ(store_.requests.size(), 2u);
  EXPECT_EQ(store_.requests[0].operation, Operation::kDigest);
  EXPECT_EQ(store_.requests[1].operation, Operation::kFetch);
  for (const StorageRequest& request : store_.requests) {
    EXPECT_EQ(request.settled_before % 3600, 0);
    EXPECT_LE(request.settled_before, latest + 60);
    EXPECT_GT(request.settled_before, latest - 3600);
  }
  EXPECT_EQ(store_.requests[0].settled_before, store_.requests[1].settled_before);
}

TEST_F(FetchPlaceTest, NodesThatFetchTheSameAreNamedToTheProgram) {
  cache_.peers = storage::Peers{.node = 1, .addresses = {"10.0.0.1", "10.0.0.2"}, .port = 7002};
  ASSERT_TRUE(Fetch(Folder()).ok());
  ASSERT_TRUE(store_.requests.back().peers.has_value());
  EXPECT_EQ(store_.requests.back().peers->port, 7002);
}

TEST_F(FetchPlaceTest, TwoDatastoresOfOneContainerShareWhatIsFetched) {
  spec::Input other = Folder();
  other.place->datastore = "again";
  EXPECT_EQ(*Fetch(Folder()), *Fetch(other));
  other.place->container = "others";
  EXPECT_NE(*Fetch(Folder()), *Fetch(other));
}

TEST_F(FetchPlaceTest, WhoWasKilledGoesOnInTheSameFolder) {
  store_.on_fetch = [this] { store_.fails = absl::UnavailableError("killed"); };
  ASSERT_TRUE(Fetch(Folder()).ok());  // which folder that is
  const fs::path first = store_.requests.back().folder;
  store_.fails = absl::OkStatus();
  ASSERT_TRUE(base::RemoveTree(first.parent_path().parent_path() / "content").ok());
  ASSERT_TRUE(base::MakeDirectories(first).ok());
  ASSERT_TRUE(base::WriteFileAtomic(first / "a.txt.part", "half").ok());
  store_.on_fetch = nullptr;
  const auto path = Fetch(Folder());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(store_.requests.back().folder, first);
  EXPECT_TRUE(fs::exists(*path / "a.txt"));
}

TEST_F(FetchPlaceTest, WhatAJobHasWrittenToIsFetchedAgainBesideIt) {
  const fs::path first = Fetch(Folder()).value();
  const fs::path file = first / "a.txt";
  struct stat info = {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0222, 0u);
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(file) << "wrong";
  const timespec later = absl::ToTimespec(absl::Now() + absl::Seconds(5));
  const timespec times[2] = {later, later};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  const fs::path second = Fetch(Folder()).value();
  EXPECT_NE(second, first);
  EXPECT_EQ(Content(second / "a.txt"), "a");
  EXPECT_EQ(Content(file), "wrong") << "the job that wrote it may still read it";
  EXPECT_EQ(*Fetch(Folder()), second);
  EXPECT_EQ(store_.fetches, 2);
}

TEST_F(FetchPlaceTest, OtherDataOfTheContainerAreFormersToo) {
  const fs::path all = *Fetch(Folder());
  ASSERT_TRUE(Fetch(Folder("uri_folder", "training")).ok());
  spec::Input pattern = Folder("uri_folder", "train/*.txt");
  pattern.place->is_pattern = true;
  ASSERT_TRUE(Fetch(pattern).ok());
  ASSERT_EQ(store_.requests.back().formers.size(), 1u);
  EXPECT_EQ(store_.requests.back().formers[0].folder, all);
  spec::Input other = Folder();
  other.place->container = "others";
  ASSERT_TRUE(Fetch(other).ok());
  EXPECT_TRUE(store_.requests.back().formers.empty());
}

TEST_F(FetchPlaceTest, OnAFullDiskWhatNoJobReadsGoesFirst) {
  const fs::path unused = *Fetch(Folder("uri_folder", "one"));
  const fs::path later = *Fetch(Folder("uri_folder", "two"));
  holds_pins_ = true;
  const fs::path used = *Fetch(Folder("uri_folder", "three"));
  store_.disk_is_full = [&] { return fs::exists(unused); };
  const auto fourth = Fetch(Folder("uri_folder", "four"));
  ASSERT_TRUE(fourth.ok()) << fourth.status();
  EXPECT_FALSE(fs::exists(unused));
  EXPECT_TRUE(fs::exists(later)) << "no more goes than is lacking";
  EXPECT_TRUE(fs::exists(used)) << "a job reads it";
  EXPECT_TRUE(store_.requests.back().tells_lacking);
}

TEST_F(FetchPlaceTest, DataLargerThanTheDiskCostNothingHoweverOftenTheyAreTried) {
  const fs::path other = *Fetch(Folder("uri_folder", "other"));
  const fs::path former = *Fetch(Folder());
  store_.disk_is_full = [] { return true; };
  store_.lacking = int64_t{1} << 40;
  store_.objects["a.txt"] = "new";
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (const char* path : {"large", "train"}) {
      const auto never = Fetch(Folder("uri_folder", path));
      EXPECT_TRUE(absl::IsResourceExhausted(never.status())) << never.status();
      EXPECT_TRUE(fs::exists(other) && fs::exists(former)) << path << ", attempt " << attempt;
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      EXPECT_NE(entry.path().filename(), "part") << "it would keep the disk full";
    }
  }
}

TEST_F(FetchPlaceTest, AFullDiskCostsTheVersionBeforeLast) {
  const fs::path other = *Fetch(Folder("uri_folder", "other"));
  const fs::path former = *Fetch(Folder());
  store_.objects["a.txt"] = "new";
  store_.disk_is_full = [&] { return fs::exists(other); };
  ASSERT_TRUE(Fetch(Folder()).ok());
  EXPECT_TRUE(fs::exists(former)) << "most of the new one lies there";
  store_.objects["a.txt"] = "newer";
  store_.disk_is_full = [&] { return fs::exists(former); };
  ASSERT_TRUE(Fetch(Folder()).ok());
  EXPECT_FALSE(fs::exists(former));
}

TEST_F(FetchPlaceTest, TheCacheKeepsToItsSize) {
  const fs::path first = *Fetch(Folder("uri_folder", "aaa"));
  const fs::path second = *Fetch(Folder("uri_folder", "bbb"));
  cache_.most_bytes = cache::Census::Of(folder_.path()).bytes();
  const fs::path third = *Fetch(Folder("uri_folder", "ccc"));
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(second) && fs::exists(third));
  EXPECT_LE(cache::Census::Of(folder_.path()).bytes(), cache_.most_bytes);
}

TEST_F(FetchPlaceTest, WhatTheDiskHasDamagedIsFetchedAgainAndNotLinked) {
  const fs::path first = *Fetch(Folder());
  const fs::path home = first.parent_path().parent_path();
  // The hash of other bytes than those that lie there, as if they had changed without a write.
  ASSERT_TRUE(base::WriteFileAtomic(home / "objects",
                                    R"({"path": "a.txt", "bytes": 1, "etag": "", "sha256": "0123"})"
                                    "\n")
                  .ok());
  EXPECT_EQ(*Fetch(Folder()), first) << "it was read in this start of the machine";
  fs::remove(home / "verified");
  cache_.reread = cache::Reread::kNever;
  EXPECT_EQ(*Fetch(Folder()), first);
  cache_.reread = cache::Reread::kOnceABoot;
  EXPECT_NE(*Fetch(Folder()), first);
  ASSERT_EQ(store_.requests.back().formers.size(), 1u);
  EXPECT_TRUE(store_.requests.back().formers[0].verify) << "its other files may be taken";
  EXPECT_EQ(store_.fetches, 2);
}

TEST_F(FetchPlaceTest, WhatChangesMeanwhileIsFetchedAgainAndNotForEver) {
  int changes = 1;
  store_.on_fetch = [&] {
    if (changes-- > 0) store_.objects["a.txt"] += "+";
  };
  const auto path = Fetch(Folder());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(Content(*path / "a.txt"), "a+");
  EXPECT_THAT(store_.resumed, testing::ElementsAre(false, true)) << "what had come is taken over";
  changes = 1000;
  store_.objects["b/c.txt"] = "d";
  const auto never = Fetch(Folder());
  EXPECT_TRUE(absl::IsAborted(never.status())) << never.status();
  EXPECT_THAT(std::string(never.status().message()), HasSubstr("input \"data\": "));
}

TEST_F(FetchPlaceTest, AFileHasItsNameAndAModelIsEither) {
  store_.objects = {{"model.pt", "weights"}};
  const auto file = Fetch(Folder("uri_file", "models/model.pt"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->filename(), "model.pt");
  EXPECT_EQ(Content(*file), "weights");
  EXPECT_EQ(Content(*Fetch(Folder("custom_model", "models/model.pt"))), "weights");
  store_.objects = {{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(Content(*Fetch(Folder("custom_model", "models/two")) / "b"), "2");
}

TEST_F(FetchPlaceTest, APatternsFolderHasTheNameBeforeTheWildcard) {
  spec::Input input = Folder("uri_folder", "train/*/x.png");
  input.place->is_pattern = true;
  EXPECT_EQ(Fetch(input)->filename(), "train");
  input.place->path = "*.png";
  EXPECT_EQ(Fetch(input)->filename(), "images");
  input.place->path = "train/[ab]/*.png";
  const fs::path plain = *Fetch(input);
  EXPECT_EQ(plain.filename(), "[ab]") << "in the paths of jobs brackets stand for themselves";
  input.place->has_classes = true;
  const fs::path of_classes = *Fetch(input);
  EXPECT_EQ(of_classes.filename(), "train");
  EXPECT_NE(of_classes.parent_path(), plain.parent_path()) << "they are of other files";
}

TEST_F(FetchPlaceTest, AFailureNamesTheInputAndWhatToDoAndNoSecret) {
  store_.fails = absl::PermissionDeniedError("account \"acme\" refuses the key");
  const auto path = Fetch(Folder());
  EXPECT_TRUE(absl::IsPermissionDenied(path.status()));
  EXPECT_THAT(std::string(path.status().message()),
              AllOf(HasSubstr("input \"data\": account \"acme\" refuses the key"),
                    HasSubstr("tutti datastore create"), Not(HasSubstr("a2V5"))));
}

}  // namespace
}  // namespace tutti::launch
