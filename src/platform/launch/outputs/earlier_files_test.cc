#include "platform/launch/outputs/earlier_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/output_store.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using storage::FaultSource;
using storage::Operation;
using storage::StorageRequest;
using storage::StorageResult;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A bucket that answers as tutti-storage does.
class EarlierFilesTest : public ::testing::Test {
 protected:
  EarlierFilesTest() {
    plan_.job_id = "blue";
    plan_.directory = (folder_.path() / "allocation").native();
    plan_.nodes.resize(1);
    spec::Output& output = plan_.outputs["model"];
    output.place = {.kind = spec::StoreKind::kS3,
                    .container = "sets",
                    .path = "runs/${{name}}",
                    .credential = spec::CredentialKind::kAccessKey,
                    .secret = "datastore.sets",
                    .datastore = "sets"};
    parts_.run = [this](const StorageRequest& request, auto&&...) { return Answer(request); };
    parts_.cache = {.folder = folder_.path() / "data"};
    parts_.secrets = {{"datastore.sets", R"({"access_key_id": "a", "secret_access_key": "b"})"}};
  }

  absl::StatusOr<StorageResult> Answer(const StorageRequest& request) {
    asked_.push_back(request.operation);
    if (request.operation == Operation::kProbe) {
      return has_container_ ? absl::StatusOr<StorageResult>(StorageResult())
                            : absl::NotFoundError("there is no such container or bucket");
    }
    if (!fails_.ok()) return fails_;
    if (request.operation == Operation::kFetch && !fetch_fails_.ok()) return fetch_fails_;
    StorageResult result;
    std::string all, lines;
    for (const auto& [path, content] : objects_) {
      absl::string_view below = path;
      const bool is_file = below == request.place.path;
      if (is_file) {
        below.remove_prefix(below.rfind('/') + 1);
      } else if (!absl::ConsumePrefix(&below, request.place.path + "/")) {
        continue;
      }
      const std::string name(below);
      const std::string sha = base::Hex(base::Sha256Of(content));
      absl::StrAppend(&all, name, "\n", content, "\n");
      absl::StrAppend(&lines, R"({"path": ")", name, R"(", "bytes": )", content.size(),
                      R"(, "etag": "e", "sha256": ")", sha, "\"}\n");
      result.objects.push_back({.path = name,
                                .bytes = static_cast<int64_t>(content.size()),
                                .etag = "e",
                                .modified = 1'700'000'000.5});
      if (request.operation != Operation::kFetch) continue;
      const fs::path file = request.folder / name;
      if (!base::MakeDirectories(file.parent_path()).ok()) std::abort();
      if (!base::WriteFileAtomic(file, content).ok()) std::abort();
    }
    if (result.objects.empty()) return absl::NotFoundError("nothing is at this path");
    if (request.operation == Operation::kFetch &&
        !base::WriteFileAtomic(request.folder / ".tutti-objects", lines).ok()) {
      std::abort();
    }
    result.digest = base::Hex(base::Sha256Of(all));
    return result;
  }

  absl::StatusOr<std::string> Fetch() {
    return FetchEarlierFiles(plan_, "model", parts_, cancelled_);
  }
  fs::path File(const std::string& path) const {
    return NodeFolders(plan_.directory).outputs() / "model" / path;
  }
  std::string Content(const std::string& path) const {
    return base::ReadFile(File(path)).value_or("?");
  }
  void Write(const fs::path& file, const std::string& content) {
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, content).ok());
  }
  fs::path List(const std::string& directory) const {
    return NodeFolders(directory).stored() / "model.jsonl";
  }

  // The files that an output's end puts.
  std::vector<std::string> PutByTheEnd(bool begun) {
    std::vector<std::string> put;
    auto store = OutputStore::Open(
        plan_, "model",
        {.put =
             [&](const StorageRequest& request, const PutLimits&,
                 const std::function<void(const storage::StoredObject&)>& object) {
               for (const std::string& file : request.files) {
                 put.push_back(file);
                 if (object) object({.path = file, .bytes = 1, .etag = "e"});
               }
               return absl::OkStatus();
             },
         .secrets = [this]() -> absl::StatusOr<SecretValues> { return parts_.secrets; },
         .now = [] { return absl::FromUnixSeconds(4'000'000'000); },
         .steady = [] { return absl::Hours(1); }});
    EXPECT_TRUE(store.ok()) << store.status();
    if (begun) store->TrustEarlier();
    store->Doubt();
    const std::atomic<bool> never = false;
    EXPECT_TRUE(store->PutAll({never, base::Deadline::After(absl::Hours(1))}).ok());
    return put;
  }

  const base::TemporaryDirectory folder_;
  spec::LaunchPlan plan_;
  EarlierParts parts_;
  std::map<std::string, std::string> objects_;
  std::vector<Operation> asked_;
  absl::Status fails_, fetch_fails_;
  bool has_container_ = true;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(EarlierFilesTest, AreThoseOfTheJobsPlaceWithTheirTimes) {
  objects_ = {{"runs/blue/a", "1"}, {"runs/blue/deep/b", "22"}, {"runs/green/c", "3"}};
  const auto note = Fetch();
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(*note, "");
  EXPECT_EQ(Content("a"), "1");
  EXPECT_EQ(Content("deep/b"), "22");
  EXPECT_FALSE(fs::exists(File("c")));
  struct stat info = {};
  ASSERT_EQ(::stat(File("a").c_str(), &info), 0);
  EXPECT_EQ(absl::TimeFromTimespec(info.st_mtim), absl::FromUnixMillis(1'700'000'000'500));
  EXPECT_NE(info.st_mode & S_IWUSR, 0u) << "the job may write to it";
}

TEST_F(EarlierFilesTest, AreNotPutAgainUnlessTheJobChangesThem) {
  objects_ = {{"runs/blue/a", "1"}, {"runs/blue/b", "2"}, {"runs/blue/gone", "3"}};
  ASSERT_TRUE(Fetch().ok());
  Write(File("b"), "changed");
  Write(File("new"), "4");
  fs::remove(File("gone"));
  EXPECT_THAT(PutByTheEnd(true), ElementsAre("b", "new", "blue.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, AreNotPutAgainByALauncherThatFollowsEither) {
  objects_ = {{"runs/blue/a", "1"}};
  ASSERT_TRUE(Fetch().ok());
  EXPECT_THAT(PutByTheEnd(false), ElementsAre("blue.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, OfALauncherThatWasKilledBeforeItHadNotedTheirStateAreNot) {
  objects_ = {{"runs/blue/a", "1"}};
  ASSERT_TRUE(Fetch().ok());
  // Its last line, which has the file's state, did not come to the disk.
  std::string text = *base::ReadFile(List(plan_.directory));
  text = text.substr(0, text.find('\n') + 1);
  ASSERT_TRUE(base::WriteFileAtomic(List(plan_.directory), text).ok());
  EXPECT_THAT(PutByTheEnd(false), ElementsAre("blue.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, OfAFileIsThatFile) {
  plan_.outputs["model"].type = "uri_file";
  plan_.outputs["model"].file = "${{name}}.pt";
  plan_.outputs["model"].place->path = "runs/${{name}}.pt";
  objects_ = {{"runs/blue.pt", "weights"}, {"runs/other.pt", "other"}};
  const auto note = Fetch();
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(Content("blue.pt"), "weights");
  EXPECT_FALSE(fs::exists(File("other.pt")));
  EXPECT_THAT(PutByTheEnd(true), ElementsAre("blue.pt.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, AreNoneWhereNothingIsThere) {
  const auto note = Fetch();
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_EQ(*note, "");
  EXPECT_THAT(asked_, ElementsAre(Operation::kBrowse, Operation::kProbe));
}

TEST_F(EarlierFilesTest, AreAnErrorWhereTheContainerIsNotThere) {
  has_container_ = false;
  const absl::Status status = Fetch().status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("output \"model\": "), HasSubstr("no such container")));
}

TEST_F(EarlierFilesTest, ThatTheseCredentialsMayNotReadAreToldOf) {
  fails_ =
      storage::WithSource(absl::PermissionDeniedError("they may not list it"), FaultSource::kStore);
  const auto note = Fetch();
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_THAT(*note,
              AllOf(HasSubstr("output \"model\" begins empty"), HasSubstr("they may not list it")));
}

TEST_F(EarlierFilesTest, AreAnErrorWhereTheStoreDoesNotTakeTheCredentials) {
  fails_ = storage::WithSource(absl::PermissionDeniedError("no such key"), FaultSource::kLogin);
  const absl::Status status = Fetch().status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("give datastore sets credentials that may read it"),
                    HasSubstr("mode: upload")));
}

TEST_F(EarlierFilesTest, ThatTheDiskHasNoRoomForAreAnErrorWithTheWayOut) {
  objects_ = {{"runs/blue/a", "1"}};
  fetch_fails_ = absl::ResourceExhaustedError("it needs 5 TiB, where 1 GiB are free");
  const absl::Status status = Fetch().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("5 TiB"), HasSubstr("make room on the node, or give the output "
                                                  "mode: upload, which begins empty")));
}

TEST_F(EarlierFilesTest, OfAStoreThatStaysAwayAreAnErrorInTheEnd) {
  fails_ = absl::UnavailableError("connection refused");
  EXPECT_THAT(std::string(Fetch().status().message()),
              AllOf(HasSubstr("connection refused"), HasSubstr("submit the job again once")));
}

TEST_F(EarlierFilesTest, OfAPlaceToWhichOthersWriteWithoutAPauseAreLeftOut) {
  objects_ = {{"runs/blue/a", "1"}};
  fetch_fails_ = absl::AbortedError("object a has changed");
  const auto note = Fetch();
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_THAT(*note, HasSubstr("output \"model\" begins empty: "));
  EXPECT_FALSE(fs::exists(File("a")));
}

TEST_F(EarlierFilesTest, AreNotWaitedForByAJobThatIsCanceled) {
  fails_ = absl::CancelledError("told to end");
  EXPECT_TRUE(absl::IsCancelled(Fetch().status()));
}

// The attempt before has put `put`, had `read` from the store, and had no time to put `own`.
TEST_F(EarlierFilesTest, TakeThePlaceOfWhatTheAttemptBeforeHadPut) {
  objects_ = {{"runs/blue/put", "newer, of another node"},
              {"runs/blue/read", "newer, of another node"},
              {"runs/blue/own", "older"},
              {"runs/blue/part", "older"}};
  plan_.former_directory = (folder_.path() / "former").native();
  auto former = StoredFiles::Open(List(plan_.former_directory));
  ASSERT_TRUE(former.ok());
  const auto sha = [](const std::string& text) { return base::Hex(base::Sha256Of(text)); };
  ASSERT_TRUE(former->Add("put", {.sha256 = sha("put")}).ok());
  ASSERT_TRUE(former->AddEarlier("read", {.sha256 = sha("read")}).ok());
  ASSERT_TRUE(former->AddEarlier("own", {.sha256 = sha("older")}).ok());
  Write(File("put"), "put");
  Write(File("read"), "read");
  Write(File("own"), "written since");
  Write(File("part"), "never put");
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Content("put"), "newer, of another node");
  EXPECT_EQ(Content("read"), "newer, of another node");
  EXPECT_EQ(Content("own"), "written since");
  EXPECT_EQ(Content("part"), "never put");
  EXPECT_THAT(PutByTheEnd(true), ElementsAre("own", "part", "blue.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, ThatTheStoreHasNoLongerAreNotPutBackByARetry) {
  plan_.former_directory = (folder_.path() / "former").native();
  auto former = StoredFiles::Open(List(plan_.former_directory));
  ASSERT_TRUE(former.ok());
  const auto sha = [](const std::string& text) { return base::Hex(base::Sha256Of(text)); };
  ASSERT_TRUE(former->Add("put", {.sha256 = sha("put")}).ok());
  ASSERT_TRUE(former->AddEarlier("changed", {.sha256 = sha("read")}).ok());
  for (const char* name : {"put", "changed", "own"}) Write(File(name), name);
  ASSERT_TRUE(Fetch().ok()) << "nothing is at its path";
  EXPECT_EQ(Content("put"), "put");
  EXPECT_THAT(PutByTheEnd(true), ElementsAre("changed", "own", "blue.stored.node-0.json"));
}

TEST_F(EarlierFilesTest, ReplaceWhatALossOfPowerHasLeftOfThem) {
  objects_ = {{"runs/blue/a", "whole"}, {"runs/blue/b", "whole"}};
  ASSERT_TRUE(Fetch().ok());
  plan_.former_directory = plan_.directory;
  for (const char* name : {"a", "b"}) {  // as a file system does that keeps times and no content
    const auto time = fs::last_write_time(File(name));
    fs::resize_file(File(name), 0);
    fs::last_write_time(File(name), time);
  }
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Content("a"), "whole");
  fs::remove(List(plan_.directory));  // nor the list
  fs::resize_file(File("b"), 0);
  fs::last_write_time(File("b"), fs::last_write_time(File("a")));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Content("b"), "whole");
}

TEST_F(EarlierFilesTest, DoNotGoThroughALinkThatTheAttemptBeforeHasLeft) {
  objects_ = {{"runs/blue/a", "1"}};
  plan_.former_directory = (folder_.path() / "former").native();
  const fs::path other = folder_.path() / "other";
  Write(other, "of somebody");
  auto former = StoredFiles::Open(List(plan_.former_directory));
  ASSERT_TRUE(former.ok());
  ASSERT_TRUE(former->Add("a", {.sha256 = base::Hex(base::Sha256Of("of somebody"))}).ok());
  ASSERT_TRUE(base::MakeDirectories(File("a").parent_path()).ok());
  fs::create_symlink(other, File("a"));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(Content("a"), "1");
  EXPECT_EQ(base::ReadFile(other).value_or(""), "of somebody");
}

TEST_F(EarlierFilesTest, AreNoResultsOfANodeThatHasNotChangedThem) {
  objects_ = {{"runs/blue/a", "1"}, {"runs/blue/b", "2"}};
  ASSERT_TRUE(Fetch().ok());
  Write(File("b"), "changed");
  const auto paths = [&] {
    Results results = ResultsOf(plan_);
    LeaveOutEarlierFiles(plan_, results);
    std::vector<std::string> found;
    for (const Result& result : results.files) found.push_back(result.path);
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_THAT(paths(), ElementsAre("outputs/model/b"));
}

TEST_F(EarlierFilesTest, BelongToOutputsThatAreMounted) {
  spec::Output output = plan_.outputs["model"];
  for (const char* mode : {"rw_mount", "mount"}) {
    output.mode = mode;
    EXPECT_TRUE(BeginsWithItsStore(output)) << mode;
  }
  for (const char* mode : {"upload", "direct"}) {
    output.mode = mode;
    EXPECT_FALSE(BeginsWithItsStore(output)) << mode;
  }
  output.mode = "rw_mount";
  output.place.reset();
  EXPECT_FALSE(BeginsWithItsStore(output));
}

}  // namespace
}  // namespace tutti::launch
