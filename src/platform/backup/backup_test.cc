// Covers: archive_reader.cc, archive_writer.cc, full_disk.cc, head.cc, home_parts.cc, restore.cc,
// work_folder.cc.
#include "platform/backup/backup.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "platform/backup/archive_reader.h"
#include "platform/backup/archive_writer.h"
#include "platform/backup/full_disk.h"
#include "platform/backup/restore.h"
#include "platform/store/store.h"
#include "spec/data/asset.h"

namespace tutti::backup {
namespace {
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const absl::Time kMade = absl::FromUnixSeconds(1'800'000'000);

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() { fs::create_directories(home_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((home_ / name).parent_path());
    ASSERT_TRUE(base::WriteFileAtomic(home_ / name, text).ok());
  }
  std::unique_ptr<store::Store> OpenStore(const fs::path& home) {
    auto store = store::Store::Open(home / "tutti.db");
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // With an event for each state.
  void Insert(const std::string& id, const std::vector<store::JobState>& states,
              const std::string& snapshot = "", const std::string& parent = "") {
    store::Job job{.id = id, .created = kMade, .snapshot = snapshot, .parent = parent};
    job.spec.command = "true";
    job.spec.compute = "local";
    std::vector<store::Event> events;
    for (const store::JobState state : states) events.push_back({.time = kMade, .state = state});
    const auto inserted = OpenStore(home_)->InsertJob(job, events);
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }
  absl::StatusOr<BackupReport> Backup(bool with_results = false) {
    return MakeBackup(
        {.home = home_, .file = file_, .with_results = with_results, .version = "1", .now = kMade});
  }
  absl::StatusOr<RestoreReport> RestoreIt(bool keep_queue = false) {
    return Restore({.file = file_,
                    .home = restored_,
                    .keep_queue = keep_queue,
                    .now = kMade + absl::Hours(1)});
  }
  std::vector<std::string> NamesIn(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  std::string Restored(const std::string& name) {
    return base::ReadFile(restored_ / name).value_or("none");
  }

  base::TemporaryDirectory folder_;
  const fs::path home_ = folder_.path() / "home", restored_ = folder_.path() / "restored",
                 file_ = folder_.path() / "backups" / "one.tar.zst";

 private:
  const bool made_ = fs::create_directories(folder_.path() / "backups");
};

using store::JobState;
const std::vector<JobState> kRan = {JobState::kQueued, JobState::kProvisioning, JobState::kRunning};
const std::vector<JobState> kCompleted = {JobState::kQueued, JobState::kProvisioning,
                                          JobState::kRunning, JobState::kFinalizing,
                                          JobState::kCompleted};

TEST_F(BackupTest, SecretsAreSavedEncryptedAndTheirKeyIfThatIsAskedFor) {
  Insert("done", kCompleted);
  ASSERT_TRUE(OpenStore(home_)->PutSecrets({{"hub", "k", "sealed bytes", kMade, kMade}}).ok());
  Write("keys/secrets", "the key");
  Write("site.yml", "secret_key_file: ./keys/secrets\n");
  EXPECT_EQ(Backup()->secrets, 1);
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(OpenStore(restored_)->Secrets()->at(0).sealed, "sealed bytes");
  EXPECT_EQ(Restored("secrets.key"), "none");
  fs::remove_all(restored_);
  fs::remove(file_);
  const auto with_key = MakeBackup(
      {.home = home_, .file = file_, .with_secret_key = true, .version = "1", .now = kMade});
  ASSERT_TRUE(with_key.ok()) << with_key.status();
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(Restored("secrets.key"), "the key");
}

TEST_F(BackupTest, CodeThatIsNotThereIsNamed) {
  Insert("waits", {JobState::kQueued}, "sha256:bb");
  Insert("done", kCompleted, "sha256:aa");
  const auto made = Backup();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->missing_code, testing::ElementsAre("sha256:bb"));
}

TEST_F(BackupTest, AKeyThatIsReplacedMeanwhileOpensWhatIsSaved) {
  Insert("done", kCompleted);
  ASSERT_TRUE(OpenStore(home_)->PutSecrets({{"hub", "one", "sealed", kMade, kMade}}).ok());
  Write("secrets.key", "one\n");
  std::vector<std::function<void()>> steps = {
      [&] { Write("secrets.key", "two\none\n"); },
      [&] {
        ASSERT_TRUE(OpenStore(home_)->PutSecrets({{"hub", "two", "sealed", kMade, kMade}}).ok());
        Write("secrets.key", "two\n");
      }};
  size_t copies = 0;
  BackupOptions options{
      .home = home_, .file = file_, .with_secret_key = true, .version = "1", .now = kMade};
  options.on_copied = [&] {
    if (copies < steps.size()) steps[copies]();
    ++copies;
  };
  const auto made = MakeBackup(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(copies, 3u);
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(OpenStore(restored_)->Secrets()->at(0).key, "two");
  EXPECT_EQ(Restored("secrets.key"), "two\n");
}

TEST_F(BackupTest, AKeyThatIsReplacedAllTheTimeIsSaid) {
  Insert("done", kCompleted);
  ASSERT_TRUE(OpenStore(home_)->PutSecrets({{"hub", "k", "sealed", kMade, kMade}}).ok());
  Write("secrets.key", "0\n");
  BackupOptions options{
      .home = home_, .file = file_, .with_secret_key = true, .version = "1", .now = kMade};
  int copies = 0;
  options.on_copied = [&] { Write("secrets.key", absl::StrCat(++copies, "\n")); };
  const auto refused = MakeBackup(options);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("tutti secret rotate"));
  EXPECT_FALSE(fs::exists(file_));
  options.with_secret_key = false;
  EXPECT_TRUE(MakeBackup(options).ok());
}

TEST_F(BackupTest, TheKeyOfSecretsIsLeftOutOfAFolderThatIsSaved) {
  Insert("done", kCompleted);
  Write("site.yml", "secret_key_file: ./site/secrets\ncomponents: {train: ./site/train.yml}\n");
  Write("site/secrets", "the key");
  Write("site/train.yml", "the component");
  ASSERT_TRUE(Backup().ok());
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(Restored("site/train.yml"), "the component");
  EXPECT_EQ(Restored("site/secrets"), "none");
}

TEST_F(BackupTest, WhatMakesAServiceIsRestoredForItsOwnerAlone) {
  Insert("done", kCompleted, "sha256:aa");
  Insert("waits", {JobState::kQueued}, "sha256:bb");
  Write("snapshots/sha256-aa", "old");
  Write("snapshots/sha256-bb", "code");
  Write("jobs/done/logs/0.out", "line\n");
  Write("data-map.yml", "data: {}\n");
  Write("computes.json", "{\"computes\": []}\n");
  for (const char* name :
       {"token", "launcher_key", "tls.pem", "clusters/hpc.json", "parts/train.yml",
        "parts/src/train.py", "environments/x", "service.json", "launcher.json", "nodes/n1/plan"}) {
    Write(name, absl::StrCat("of ", name));
  }
  Write("site.yml", "components: {train: ./parts/train.yml}\n");
  const auto made = Backup();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->jobs, 2);
  struct stat info = {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), made->bytes);
  EXPECT_THAT(NamesIn(file_.parent_path()), UnorderedElementsAre("one.tar.zst"));

  const auto restored = RestoreIt();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->jobs, 2);
  EXPECT_EQ(restored->head.made, kMade);
  EXPECT_EQ(restored->head.home, home_.string());
  EXPECT_THAT(
      NamesIn(restored_),
      UnorderedElementsAre("tutti.db", "token", "launcher_key", "tls.pem", "data-map.yml",
                           "computes.json", "clusters", "parts", "snapshots", "site.yml", "lock"));
  EXPECT_EQ(Restored("token"), "of token");
  EXPECT_EQ(Restored("parts/src/train.py"), "of parts/src/train.py");
  EXPECT_EQ(Restored("snapshots/sha256-bb"), "code");
  EXPECT_EQ(Restored("snapshots/sha256-aa"), "none");  // its job has ended
  ASSERT_EQ(::stat((restored_ / "token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(restored_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(OpenStore(restored_)->GetJob("done")->last.state, JobState::kCompleted);
}

TEST_F(BackupTest, ResultsAreInItWhereTheyAreAskedFor) {
  Insert("done", kCompleted);
  Write("jobs/done/logs/0.out", "line\n");
  Write("jobs/done/outputs/.hidden", "kept");
  Write("jobs/.deleted-other/x", "left out");
  fs::create_symlink("model", home_ / "jobs/done/outputs/best");
  ASSERT_TRUE(Backup(/*with_results=*/true).ok());
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(Restored("jobs/done/logs/0.out"), "line\n");
  EXPECT_EQ(Restored("jobs/done/outputs/.hidden"), "kept");
  EXPECT_THAT(NamesIn(restored_ / "jobs"), UnorderedElementsAre("done"));
  EXPECT_EQ(fs::read_symlink(restored_ / "jobs/done/outputs/best"), "model");
}

TEST_F(BackupTest, WhatHadNotEndedIsNotBegunAgain) {
  Insert("ran", kRan);
  Insert("waits", {JobState::kQueued});
  Insert("again", {JobState::kQueued, JobState::kRunning, JobState::kQueued});
  ASSERT_TRUE(Backup().ok());
  const auto restored = RestoreIt();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->unended.failed, 1);
  EXPECT_EQ(restored->unended.canceled, 2);
  const auto store = OpenStore(restored_);
  EXPECT_THAT(*store->NonTerminalJobs(), IsEmpty());
  const store::JobRecord ran = *store->GetJob("ran");
  EXPECT_EQ(ran.last.state, JobState::kFailed);
  EXPECT_EQ(ran.last.time, kMade + absl::Hours(1));
  EXPECT_THAT(ran.last.reason,
              HasSubstr("lost: had begun when the backup of 2027-01-15T08:00:00Z"));
  EXPECT_EQ(store->GetJob("waits")->last.state, JobState::kCanceled);
  EXPECT_THAT(store->GetJob("waits")->last.reason, HasSubstr("it may have been begun since"));
}

// The clock of the machine that made the backup may be ahead of this one's.
TEST_F(BackupTest, NoJobEndsBeforeItsLastEvent) {
  const absl::Time late = kMade + absl::Hours(5);
  {
    Insert("ran", kRan);
    const auto store = OpenStore(home_);
    const auto last = store->GetJob("ran");
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_TRUE(store
                    ->AppendEvent("ran", last->last.sequence,
                                  {.time = late, .state = JobState::kRunning, .reason = "a note"})
                    .ok());
  }
  ASSERT_TRUE(Backup().ok());
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(OpenStore(restored_)->GetJob("ran")->last.time, late);
}

TEST_F(BackupTest, TheQueueIsKeptWhereTheUserSaysThatNothingWasBegunSince) {
  Insert("ran", kRan);
  Insert("waits", {JobState::kQueued});
  Insert("again", {JobState::kQueued, JobState::kRunning, JobState::kQueued});
  Insert("ran.step", {JobState::kQueued}, "", "ran");
  ASSERT_TRUE(Backup().ok());
  const auto restored = RestoreIt(/*keep_queue=*/true);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->unended.kept, 1);
  EXPECT_EQ(restored->unended.canceled, 2);
  EXPECT_EQ(OpenStore(restored_)->GetJob("waits")->last.state, JobState::kQueued);
}

TEST_F(BackupTest, NoAllocationHasTheIdOfOneThatTheOtherServiceMadeSince) {
  Insert("first", kCompleted);
  ASSERT_TRUE(Backup().ok());
  Insert("train", {JobState::kQueued});
  const int64_t since = OpenStore(home_)->GetJob("train")->job.sequence;
  ASSERT_TRUE(RestoreIt().ok());
  const auto store = OpenStore(restored_);
  store::Job job{.id = "train", .created = kMade};
  job.spec.command = "true";
  const auto again = store->InsertJob(job, store::Event{.time = kMade});
  EXPECT_GT(again->job.sequence, since);
}

TEST_F(BackupTest, AssetsAreWhereTheyNowLie) {
  OpenStore(home_);
  Write("assets/component/train/1/train.yml", "x");
  spec::Assets assets(spec::AssetKind::kComponent);
  ASSERT_TRUE(assets
                  .Add({.name = "train",
                        .version = "1",
                        .type = "command",
                        .path = (home_ / "assets/component/train/1/train.yml").string(),
                        .digest = "d"})
                  .ok());
  ASSERT_TRUE(spec::WriteAssets(home_, assets).ok());
  ASSERT_TRUE(Backup().ok());
  ASSERT_TRUE(RestoreIt().ok());
  const auto moved = spec::ReadAssets(restored_, spec::AssetKind::kComponent);
  ASSERT_TRUE(moved.ok()) << moved.status();
  const std::string path = moved->assets().at("train").front().path;
  EXPECT_EQ(path, (restored_ / "assets/component/train/1/train.yml").string());
  EXPECT_EQ(*base::ReadFile(path), "x");
}

TEST_F(BackupTest, ReplacesNothing) {
  OpenStore(home_);
  ASSERT_TRUE(base::WriteFileAtomic(file_, "mine").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Backup().status()));
  EXPECT_EQ(*base::ReadFile(file_), "mine");
}

TEST(ExplainFullDisk, NamesTheFolderWhatIsFreeAndWhatIsNeededAndLeavesAllElseAsItIs) {
  const base::TemporaryDirectory folder;
  const fs::path work = folder.path() / ".tutti-backup";
  const auto needed = [] { return uint64_t{40} << 20; };
  const absl::Status full =
      base::ErrnoStatus(absl::StrCat("write ", (work / "archive").string()), ENOSPC);
  const absl::Status explained = ExplainFullDisk(full, work, 3 << 20, needed);
  EXPECT_TRUE(absl::IsResourceExhausted(explained));
  EXPECT_THAT(std::string(explained.message()),
              HasSubstr(absl::StrCat("the disk is full: ", folder.path().string(),
                                     " had 3 MiB free, and this backup takes up to 40 MiB there")));
  EXPECT_THAT(std::string(explained.message()), HasSubstr("free some space"));
  // That of the service itself, say, where a lock cannot be made.
  const absl::Status others = base::ErrnoStatus("/home/assets/lock", ENOSPC);
  EXPECT_EQ(ExplainFullDisk(others, work, 3 << 20, needed), others);
  const absl::Status broken = base::ErrnoStatus((work / "archive").string(), EIO);
  EXPECT_EQ(ExplainFullDisk(broken, work, 3 << 20, needed), broken);
  EXPECT_TRUE(ExplainFullDisk(absl::OkStatus(), work, 0, needed).ok());
}

TEST(BytesAt, CountsFilesAndNotWhatLinksPointTo) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::MakeDirectories(folder.path() / "a/b").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "a/b/one", "123").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "a/two", "4567").ok());
  fs::create_symlink(folder.path() / "a/two", folder.path() / "a/link");
  EXPECT_EQ(BytesAt(folder.path() / "a"), 7u);
  EXPECT_EQ(BytesAt(folder.path() / "a/two"), 4u);
  EXPECT_EQ(BytesAt(folder.path() / "none"), 0u);
}

TEST_F(BackupTest, AFolderWithoutAServiceIsNamed) {
  const absl::Status status = Backup().status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no service's state"));
  EXPECT_FALSE(fs::exists(file_.parent_path() / ".tutti-backup"));
}

TEST_F(BackupTest, WhatAKilledOneLeftIsRemovedAndOneThatWritesIsNotDisturbed) {
  OpenStore(home_);
  const fs::path work = file_.parent_path() / ".tutti-backup";
  fs::create_directories(work);
  ASSERT_TRUE(base::WriteFileAtomic(work / "archive", "half").ok());
  {
    const auto other = base::HoldFolder(work);
    const absl::Status refused = Backup().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("another backup is being written to"));
  }
  ASSERT_TRUE(Backup().ok());
  EXPECT_THAT(NamesIn(file_.parent_path()), UnorderedElementsAre("one.tar.zst"));
}

TEST_F(BackupTest, AFolderThatIsInUseIsNotRestoredOver) {
  OpenStore(home_);
  ASSERT_TRUE(Backup().ok());
  fs::create_directories(restored_);
  ASSERT_TRUE(base::WriteFileAtomic(restored_ / "token", "mine").ok());
  const absl::Status refused = RestoreIt().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("is not empty (it has token)"), HasSubstr("--replace")));
  fs::remove(restored_ / "token");
  EXPECT_TRUE(RestoreIt().ok());  // empty folders may be there
}

TEST_F(BackupTest, AServicesFolderIsReplacedIfThatIsAskedForAndSetAside) {
  Insert("saved", kCompleted);
  ASSERT_TRUE(Backup().ok());
  const RestoreOptions options = {
      .file = file_, .home = home_, .replace = true, .now = kMade + absl::Hours(1)};
  Insert("later", kCompleted);
  Write("jobs/later/logs/0.out", "line\n");
  {
    const auto held = base::HoldFolder(home_);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_THAT(std::string(Restore(options).status().message()),
                AllOf(HasSubstr("another service"), HasSubstr("stop it first")));
  }
  const auto replaced = Restore(options);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_TRUE(absl::IsNotFound(OpenStore(home_)->GetJob("later").status()));
  EXPECT_TRUE(OpenStore(home_)->GetJob("saved").ok());
  EXPECT_THAT(replaced->aside.string(), HasSubstr("/home.aside-20270115-"));
  EXPECT_TRUE(OpenStore(replaced->aside)->GetJob("later").ok());
  EXPECT_EQ(*base::ReadFile(replaced->aside / "jobs/later/logs/0.out"), "line\n");
  const auto again = Restore(options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->aside, replaced->aside);
  EXPECT_THAT(NamesIn(folder_.path()), testing::SizeIs(4)) << "home, two aside, the backups";
}

TEST_F(BackupTest, WhereTheOldFolderIsIsToldThoughTheDiskDidNotTakeIt) {
  Insert("saved", kCompleted);
  ASSERT_TRUE(Backup().ok());
  rlimit files = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  RestoreOptions options = {.file = file_, .home = home_, .replace = true, .now = kMade};
  options.on_step = [&] {  // the folders can be moved, and none can be opened to be synced
    const rlimit none = {0, files.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  };
  const absl::Status failed = Restore(options).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  const std::string aside = home_.string() + ".aside-";
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr("what was there is now " + aside), HasSubstr("Too many open files")));
  EXPECT_TRUE(OpenStore(home_)->GetJob("saved").ok());
}

TEST_F(BackupTest, AFolderOfSomethingElseIsNeverReplaced) {
  OpenStore(home_);
  ASSERT_TRUE(Backup().ok());
  fs::create_directories(restored_);
  ASSERT_TRUE(base::WriteFileAtomic(restored_ / "thesis.tex", "mine").ok());
  const absl::Status refused =
      Restore({.file = file_, .home = restored_, .replace = true, .now = kMade}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is no service's folder"));
  EXPECT_EQ(Restored("thesis.tex"), "mine");
}

// SIGKILL comes before each change of names: one of the two stands there, and the other is whole.
TEST_F(BackupTest, WhateverEndsAReplacementOneOfTheTwoIsThereAndTheOtherIsWhole) {
  Insert("saved", kCompleted);
  ASSERT_TRUE(Backup().ok());
  Insert("later", kCompleted);
  const auto has = [&](const fs::path& folder, const char* job) {
    return fs::exists(folder / "tutti.db") && OpenStore(folder)->GetJob(job).ok();
  };
  int steps = 0;
  for (bool ended = false; !ended; ++steps) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int left = steps;
      const auto done =
          Restore({.file = file_, .home = home_, .replace = true, .now = kMade, .on_step = [&] {
                     if (left-- == 0) ::kill(::getpid(), SIGKILL);
                   }});
      ::_exit(done.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ended = WIFEXITED(status);
    ASSERT_TRUE(ended ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL) << status;
    ASSERT_TRUE(has(home_, "saved")) << steps;
    bool is_kept = has(home_, "later");
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path() != home_) is_kept |= has(entry.path(), "later");
    }
    EXPECT_TRUE(is_kept) << "after " << steps << " steps";
    EXPECT_EQ(has(home_, "later"), !ended) << steps;
  }
  EXPECT_GE(steps, 3) << "two changes, and the whole";
}

TEST_F(BackupTest, EachDamageIsFoundAndNothingRestored) {
  Insert("done", kCompleted);
  Write("token", "0123456789abcdef");
  Write("jobs/done/logs/0.out", std::string(10'000, 'a'));
  ASSERT_TRUE(Backup(/*with_results=*/true).ok());
  const std::string whole = *base::ReadFile(file_);
  for (size_t at = 20; at < whole.size(); at += whole.size() / 50 + 1) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    fs::remove(file_);
    ASSERT_TRUE(base::WriteFileAtomic(file_, damaged).ok());
    const absl::Status status = RestoreIt().status();
    if (status.ok()) {  // of the compression's own words some say nothing
      EXPECT_EQ(Restored("token"), "0123456789abcdef") << at;
      EXPECT_EQ(Restored("jobs/done/logs/0.out"), std::string(10'000, 'a')) << at;
      fs::remove_all(restored_);
      continue;
    }
    EXPECT_THAT(std::string(status.message()), HasSubstr(file_.string())) << at;
    EXPECT_FALSE(fs::exists(restored_)) << at;
  }
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    fs::remove(file_);
    ASSERT_TRUE(base::WriteFileAtomic(file_, whole.substr(0, size)).ok());
    EXPECT_THAT(std::string(RestoreIt().status().message()), HasSubstr(file_.string())) << size;
  }
}

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() { fs::create_directories(folder_.path() / "out"); }
  base::TemporaryDirectory folder_;
  const fs::path file_ = folder_.path() / "archive", out_ = folder_.path() / "out";
};

TEST_F(ArchiveTest, NoEntryIsWrittenOutsideOfTheFolder) {
  for (const std::string name : {"../out.txt", "/tmp/out.txt", "a/../../b", "./a", "a//b"}) {
    fs::remove(file_);
    auto writer = ArchiveWriter::Create(file_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->AddText("head", "{}").ok());
    ASSERT_TRUE((*writer)->AddText(name, "x").ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_TRUE(absl::IsDataLoss(UnpackArchive(file_, out_, "head").status())) << name;
  }
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(ArchiveTest, NoFileIsWrittenThroughALink) {
  fs::create_symlink(folder_.path(), folder_.path() / "link");
  auto writer = ArchiveWriter::Create(file_);
  ASSERT_TRUE((*writer)->AddText("head", "{}").ok());
  ASSERT_TRUE((*writer)->Add("a", folder_.path() / "link").ok());
  ASSERT_TRUE((*writer)->AddText("a/evil", "x").ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_FALSE(UnpackArchive(file_, out_, "head").ok());
  EXPECT_FALSE(fs::exists(folder_.path() / "evil"));
}

TEST_F(ArchiveTest, SumsAreAsSha256sumReadsThem) {
  auto writer = ArchiveWriter::Create(file_);
  ASSERT_TRUE((*writer)->AddText("head", "hello").ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_EQ(SumLine("2cf2", "head"), "2cf2  head\n");
  const auto head = UnpackArchive(file_, out_, "head");
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(*head, "hello");
}

TEST(BackupHead, OneOfALaterFormIsNamed) {
  const Head head{.version = "1", .home = "/h", .made = kMade, .with_results = true};
  const auto again = HeadFromJson(ToJson(head));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->made, kMade);
  EXPECT_TRUE(again->with_results);
  EXPECT_TRUE(absl::IsFailedPrecondition(HeadFromJson("{\"form\": 2, \"other\": 1}").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(HeadFromJson("{\"form\": 1}").status()));
}

TEST_F(BackupTest, WhatMlflowsClientsLoggedIsSavedWithItsFilesAsResultsAre) {
  Insert("done", kCompleted);
  {
    // Any database will do: what is in it is tracking's own.
    const auto tracking = store::Store::Open(home_ / "tracking.db");
    ASSERT_TRUE(tracking.ok()) << tracking.status();
    ASSERT_TRUE((*tracking)->AddCordon({.node = "n1", .reason = "r"}).ok());
    Write("tracking/artifacts/0/r/artifacts/a", "abc");
    Write("tracking/incoming/0", "half");
    ASSERT_TRUE(Backup(/*with_results=*/true).ok());
  }
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ((*store::Store::Open(restored_ / "tracking.db"))->Cordons()->size(), 1u);
  EXPECT_EQ(Restored("tracking/artifacts/0/r/artifacts/a"), "abc");
  EXPECT_EQ(Restored("tracking/incoming/0"), "none");
  fs::remove_all(restored_);
  fs::remove(file_);
  ASSERT_TRUE(Backup().ok());
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ(Restored("tracking/artifacts/0/r/artifacts/a"), "none");
  EXPECT_TRUE(fs::exists(restored_ / "tracking.db"));
}

TEST_F(BackupTest, RegisteredModelsAreSavedWithTheirFiles) {
  Insert("done", kCompleted);
  {
    // Any database will do: what is in it is the registry's own.
    const auto models = store::Store::Open(home_ / "models.db");
    ASSERT_TRUE(models.ok()) << models.status();
    ASSERT_TRUE((*models)->AddCordon({.node = "n1", .reason = "r"}).ok());
    Write("models/trees/sha256-ab/conf/a.json", "{}");
    Write("models/files/sha256-cd", "{}");
    Write("models/trees/.gone-1-sha256-ef/b", "half");
    Write("models/.incoming-0/1", "half");
    ASSERT_TRUE(Backup().ok());
  }
  ASSERT_TRUE(RestoreIt().ok());
  EXPECT_EQ((*store::Store::Open(restored_ / "models.db"))->Cordons()->size(), 1u);
  EXPECT_EQ(Restored("models/trees/sha256-ab/conf/a.json"), "{}");
  EXPECT_EQ(NamesIn(restored_ / "models/trees").size(), 1u);
  EXPECT_EQ(NamesIn(restored_ / "models").size(), 1u) << "files are in their trees";
}

}  // namespace
}  // namespace tutti::backup
