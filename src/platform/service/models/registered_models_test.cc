// Covers: model_contents.cc, registered_model.cc, registered_model_rows.cc.
#include "platform/service/models/registered_models.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/test_patience.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Sha256(const std::string& bytes) { return base::Hex(base::Sha256Of(bytes)); }

const auto kNobody = [](const std::string&) { return false; };

class ModelsTest : public ::testing::Test {
 protected:
  std::unique_ptr<RegisteredModels> Open(std::function<void(const char*)> on_step = {}) {
    return std::make_unique<RegisteredModels>(home_.path(), &clock_, std::move(on_step));
  }
  // Sends the file, and returns it as one of that name.
  static ModelFile Send(const RegisteredModels& models, const std::string& path,
                        const std::string& bytes) {
    const ModelFile file{path, Sha256(bytes), bytes.size()};
    auto upload = models.contents().Begin("sha256:" + file.sha256, -1);
    EXPECT_TRUE(upload.ok()) << upload.status();
    if (!upload.ok()) return file;
    EXPECT_TRUE(upload->Write(bytes).ok());
    EXPECT_TRUE(upload->Commit().ok());
    return file;
  }
  static ModelCreation Creation(const RegisteredModels& models, const std::string& name,
                                const std::string& bytes) {
    ModelCreation creation{.name = name};
    creation.content.files = {Send(models, "model.bin", bytes), Send(models, "conf/a.json", "{}")};
    return creation;
  }
  // How many files are kept below a folder of the registry.
  size_t CountFiles(const char* folder) const {
    size_t count = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(home_.path() / "models" / folder, error), end;
         !error && entry != end; entry.increment(error)) {
      count += entry->is_regular_file() ? 1 : 0;
    }
    return count;
  }
  std::vector<std::string> NamesOfHome() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(home_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  // Makes what is below it look a week old.
  void MakeOld(const char* folder) const {
    const fs::path top = home_.path() / "models" / folder;
    for (const auto& entry : fs::directory_iterator(top)) {
      const timespec old[2] = {{::time(nullptr) - 7 * 86400, 0}, {::time(nullptr) - 7 * 86400, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, entry.path().c_str(), old, 0), 0);
    }
  }

  const base::TemporaryDirectory home_;
  const base::SystemClock clock_;
};

TEST_F(ModelsTest, NumbersVersionsAndKeepsTheirFiles) {
  const auto models = Open();
  const auto first = models->Register(Creation(*models, "net", "one"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->is_new);
  EXPECT_EQ(first->version.version, "1");
  EXPECT_EQ(first->version.file_count, 2);
  EXPECT_EQ(first->version.bytes, 5u);
  const auto second = models->Register(Creation(*models, "net", "two"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->version.version, "2");
  const fs::path folder = models->PathOf(first->version);
  EXPECT_EQ(*base::ReadFile(folder / "model.bin"), "one");
  EXPECT_EQ(*base::ReadFile(folder / "conf/a.json"), "{}");
  EXPECT_EQ(models->Find("net", "")->version, "2");
  EXPECT_EQ(models->Find("net", "@latest")->version, "2");
  EXPECT_EQ(models->Find("net", "1")->digest, first->version.digest);
  const auto content = models->ContentOf(first->version);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(DigestOf(*content), first->version.digest);
  // Another process finds the same.
  const auto again = Open();
  EXPECT_EQ(again->Find("net", "2")->digest, second->version.digest);
  EXPECT_EQ(again->Count()->versions, 2);
  EXPECT_EQ(again->Count()->bytes, 10u);
}

TEST_F(ModelsTest, MakesNothingBeforeItsFirstUse) {
  const auto models = Open();
  EXPECT_TRUE(models->List("", 10, {})->empty());
  EXPECT_TRUE(absl::IsNotFound(models->Find("net", "").status()));
  EXPECT_TRUE(absl::IsNotFound(models->Change("net", "", {.archived = true})));
  EXPECT_EQ(models->Count()->versions, 0);
  EXPECT_TRUE(models->RemoveOld().ok());
  EXPECT_THAT(NamesOfHome(), ElementsAre());
}

TEST_F(ModelsTest, RefusesAVersionThatIsThereWithOtherFiles) {
  const auto models = Open();
  ModelCreation creation = Creation(*models, "net", "one");
  creation.version = "2.0";
  creation.tags = {{"team", "vision"}};
  ASSERT_TRUE(models->Register(creation)->is_new);
  creation.tags.clear();
  creation.description = "said later";
  const auto same = models->Register(creation);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_FALSE(same->is_new);
  EXPECT_EQ(same->version.description, "said later");
  EXPECT_EQ(same->version.tags.at("team"), "vision");

  ModelCreation other = Creation(*models, "net", "two");
  other.version = "2.0";
  const size_t before = CountFiles("trees");
  const auto refused = models->Register(other).status();
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("net:2.0 is there with other files"));
  EXPECT_EQ(CountFiles("trees"), before);
  creation.type = "triton_model";
  EXPECT_TRUE(absl::IsAlreadyExists(models->Register(creation).status()));
}

TEST_F(ModelsTest, GivesNoNumberTwice) {
  const auto models = Open();
  ModelCreation creation = Creation(*models, "net", "x");
  creation.version = "7";
  ASSERT_TRUE(models->Register(creation).ok());
  creation.version = "";
  EXPECT_EQ(models->Register(creation)->version.version, "8");
  ASSERT_TRUE(models->Delete("net", "8", kNobody).ok());
  EXPECT_EQ(models->Register(creation)->version.version, "9");
  creation.version = "best";
  ASSERT_TRUE(models->Register(creation).ok());
  creation.version = "99999999999999999999";
  ASSERT_TRUE(models->Register(creation).ok());
  creation.version = "";
  EXPECT_EQ(models->Register(creation)->version.version, "10");
}

TEST_F(ModelsTest, NumbersWithoutAGapWhoeverRegistersAtTheSameTime) {
  constexpr int kClients = 4, kEach = 10;
  const auto models = Open();
  std::vector<std::thread> clients;
  absl::Mutex mutex;
  std::set<int> numbers;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < kEach; ++i) {
        const auto made = models->Register(Creation(*models, "net", absl::StrCat(client, " ", i)));
        ASSERT_TRUE(made.ok()) << made.status();
        absl::MutexLock lock(&mutex);
        numbers.insert(std::stoi(made->version.version));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(numbers.size(), size_t{kClients * kEach});
  EXPECT_EQ(*numbers.begin(), 1);
  EXPECT_EQ(*numbers.rbegin(), kClients * kEach);
}

TEST_F(ModelsTest, AnswersARepeatedCallWithWhatItMade) {
  const auto models = Open();
  ModelCreation creation = Creation(*models, "net", "one");
  creation.nonce = "abc";
  EXPECT_EQ(models->Register(creation)->version.version, "1");
  EXPECT_EQ(models->Register(creation)->version.version, "1");
  EXPECT_EQ(models->FindModel("net")->versions, 1);
  creation.name = "other";
  EXPECT_TRUE(absl::IsInvalidArgument(models->Register(creation).status()));
}

TEST_F(ModelsTest, FollowsAliasesAndPassesOverWhatIsArchived) {
  const auto models = Open();
  for (const char* bytes : {"1", "2", "3"}) {
    ASSERT_TRUE(models->Register(Creation(*models, "net", bytes)).ok());
  }
  ASSERT_TRUE(models->SetAlias("net", "champion", "1").ok());
  EXPECT_EQ(models->Find("net", "@champion")->version, "1");
  ASSERT_TRUE(models->SetAlias("net", "champion", "@latest").ok());
  EXPECT_THAT(models->Find("net", "3")->aliases, ElementsAre("champion"));
  EXPECT_THAT(models->Find("net", "1")->aliases, ElementsAre());
  ASSERT_TRUE(models->Change("net", "3", {.stage = "Production", .archived = true}).ok());
  EXPECT_EQ(models->Find("net", "@latest")->version, "2");
  EXPECT_EQ(models->FindModel("net")->latest, "2");
  EXPECT_EQ(models->Find("net", "@champion")->stage, "Production");
  const absl::Status none = models->Find("net", "@loser").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(none.message(), HasSubstr("but champion, latest"));
  EXPECT_THAT(models->Find("net", "9").status().message(), HasSubstr("but versions 3, 2, 1"));
  ASSERT_TRUE(models->RemoveAlias("net", "champion").ok());
  EXPECT_TRUE(absl::IsNotFound(models->RemoveAlias("net", "champion")));
  EXPECT_TRUE(absl::IsInvalidArgument(models->SetAlias("net", "latest", "1")));
  ASSERT_TRUE(models->Change("net", "", {.archived = true}).ok());
  EXPECT_EQ(models->List("", 10, false)->size(), 0u);
  EXPECT_EQ(models->List("", 10, true)->size(), 1u);
  EXPECT_EQ(models->List("net", 10, {})->size(), 0u);
}

TEST_F(ModelsTest, ListsVersionsByPage) {
  const auto models = Open();
  const ModelCreation creation = Creation(*models, "net", "x");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(models->Register(creation).ok());
  const auto first = models->ListVersions("net", 0, 3);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->versions.size(), 3u);
  EXPECT_EQ(first->versions[0].version, "5");
  const auto second = models->ListVersions("net", first->before, 3);
  ASSERT_EQ(second->versions.size(), 2u);
  EXPECT_EQ(second->versions[1].version, "1");
  EXPECT_EQ(second->before, 0);
}

TEST_F(ModelsTest, DeletesWhatNoOtherVersionHas) {
  const auto models = Open();
  ASSERT_TRUE(models->Register(Creation(*models, "net", "one")).ok());
  ASSERT_TRUE(models->Register(Creation(*models, "net", "two")).ok());
  const auto other = models->Register(Creation(*models, "copy", "one"));
  EXPECT_EQ(CountFiles("files"), 3u);
  const auto used = [&](const std::string& digest) { return digest == other->version.digest; };
  EXPECT_TRUE(absl::IsFailedPrecondition(models->Delete("copy", "", used)));
  ASSERT_TRUE(models->Delete("net", "", kNobody).ok());
  EXPECT_EQ(*base::ReadFile(models->PathOf(other->version) / "model.bin"), "one");
  EXPECT_EQ(CountFiles("files"), 2u);
  ASSERT_TRUE(models->Delete("copy", "1", kNobody).ok());
  EXPECT_EQ(CountFiles("trees"), 0u);
  EXPECT_EQ(CountFiles("files"), 0u);
  EXPECT_EQ(models->FindModel("copy")->versions, 0);
  EXPECT_TRUE(absl::IsNotFound(models->Delete("net", "", kNobody)));
}

TEST_F(ModelsTest, KeepsAFileThatAnotherClientHasAskedForSince) {
  const auto models = Open();
  const ModelCreation creation = Creation(*models, "net", "one");
  ASSERT_TRUE(models->Register(creation).ok());
  // The kernel's clock for files ticks every few milliseconds.
  const fs::path file =
      home_.path() / "models/files" / ("sha256-" + creation.content.files[0].sha256);
  const absl::Time made = models->Find("net", "1")->created;
  do {
    ASSERT_TRUE(models->contents().Find("sha256:" + creation.content.files[0].sha256).ok());
  } while (fs::last_write_time(file) <=
           std::chrono::file_clock::from_sys(absl::ToChronoTime(made)));
  ASSERT_TRUE(models->Delete("net", "", kNobody).ok());
  EXPECT_EQ(CountFiles("files"), 1u);
  EXPECT_EQ(models
                ->Register({.name = "other",
                            .content = {.is_file = true, .files = {creation.content.files[0]}}})
                ->version.version,
            "1");
}

TEST_F(ModelsTest, RemovesWhatNoVersionHasOnceItIsOld) {
  const auto models = Open();
  const auto kept = models->Register(Creation(*models, "net", "kept"));
  ASSERT_TRUE(kept.ok());
  Send(*models, "left", "left");
  ModelContent orphan{.files = {Send(*models, "orphan", "orphan")}};
  ASSERT_TRUE(models->contents().Place(orphan, DigestOf(orphan)).ok());
  ASSERT_TRUE(models->RemoveOld().ok());
  EXPECT_EQ(CountFiles("files"), 4u);
  EXPECT_EQ(CountFiles("trees"), 3u);
  MakeOld("files");
  MakeOld("trees");
  ASSERT_TRUE(models->RemoveOld().ok());
  EXPECT_EQ(CountFiles("trees"), 2u);
  EXPECT_EQ(CountFiles("files"), 2u);
  EXPECT_EQ(*base::ReadFile(models->PathOf(kept->version) / "model.bin"), "kept");
}

TEST_F(ModelsTest, KeepsNothingOfAnUploadThatDoesNotComeToItsEnd) {
  const auto models = Open();
  {
    auto upload = models->contents().Begin("sha256:" + Sha256("abc"), 3);
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE(upload->Write("ab").ok());
  }
  auto wrong = models->contents().Begin("sha256:" + Sha256("abc"), 3);
  ASSERT_TRUE(wrong->Write("abd").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(wrong->Commit()));
  wrong = absl::UnknownError("gone");
  EXPECT_EQ(CountFiles(""), 0u);
  EXPECT_TRUE(absl::IsNotFound(models->contents().Find("sha256:" + Sha256("abc"))));
  for (const char* name : {"sha256:", "sha256:..", "md5:abc", "../x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(models->contents().Begin(name, 0).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(models->contents().Find(name))) << name;
  }
}

TEST_F(ModelsTest, KeepsAFileThatIsSentAgainOnce) {
  const auto models = Open();
  const auto made = models->Register(Creation(*models, "net", "one"));
  ASSERT_TRUE(made.ok()) << made.status();
  const ModelFile file = Send(*models, "model.bin", "one");
  struct stat kept = {}, of_tree = {};
  const fs::path path = home_.path() / "models/files" / ("sha256-" + file.sha256);
  ASSERT_EQ(::stat(path.c_str(), &kept), 0);
  ASSERT_EQ(::stat((models->PathOf(made->version) / "model.bin").c_str(), &of_tree), 0);
  EXPECT_EQ(kept.st_ino, of_tree.st_ino);
  EXPECT_EQ(CountFiles("files"), 2u);
}

TEST_F(ModelsTest, RemovesWhatAKilledProcessWasReceiving) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto models = Open();
    auto upload = models->contents().Begin("sha256:" + Sha256("abc"), 3);
    if (!upload.ok() || !upload->Write("ab").ok()) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(CountFiles(""), 1u);
  const auto models = Open();
  models->RemoveEarlier();
  base::AwaitPatiently(absl::Seconds(20), [&] { return CountFiles("") == 0; });
  EXPECT_EQ(CountFiles(""), 0u);
}

TEST_F(ModelsTest, NamesTheFilesThatHaveNotBeenSent) {
  const auto models = Open();
  ModelCreation creation{.name = "net"};
  creation.content.files = {{"a/b", Sha256("never"), 5}, Send(*models, "c", "sent")};
  const absl::Status missing = models->Register(creation).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(missing));
  EXPECT_THAT(missing.message(), HasSubstr("sha256:…): a/b"));
  creation.content.files = {{"c", Sha256("sent"), 17}};
  EXPECT_TRUE(absl::IsInvalidArgument(models->Register(creation).status()));
  EXPECT_EQ(CountFiles("trees"), 0u);
}

TEST_F(ModelsTest, TakesAFileFromAnotherFolder) {
  const auto models = Open();
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "w", "weights").ok());
  const auto file = models->contents().Adopt(folder.path() / "w", "model/w");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->path, "model/w");
  EXPECT_EQ(file->bytes, 7u);
  EXPECT_EQ(file->sha256, Sha256("weights"));
  fs::create_symlink(folder.path() / "w", folder.path() / "link");
  EXPECT_FALSE(models->contents().Adopt(folder.path() / "link", "x").ok());
  EXPECT_FALSE(models->contents().Adopt(folder.path(), "x").ok());
  // It is a copy: what happens to the other is not seen.
  ASSERT_TRUE(models->Register({.name = "m", .content = {.files = {*file}}}).ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "w", "changed").ok());
  EXPECT_EQ(*base::ReadFile(models->PathOf(*models->Find("m", "1")) / "model/w"), "weights");
}

TEST_F(ModelsTest, FindsFilesOfAVersionAndNoOthers) {
  const auto models = Open();
  const auto made = models->Register(Creation(*models, "net", "one"));
  EXPECT_TRUE(models->FileOf(made->version, "conf/a.json").ok());
  EXPECT_TRUE(absl::IsNotFound(models->FileOf(made->version, "conf").status()));
  EXPECT_TRUE(absl::IsNotFound(models->FileOf(made->version, "none").status()));
  for (const char* path : {"", "../x", "/etc/passwd", "conf/../model.bin", "conf//a.json"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(models->FileOf(made->version, path).status())) << path;
  }
}

TEST_F(ModelsTest, RefusesWhatNoModelCanSay) {
  const auto models = Open();
  const ModelFile file = Send(*models, "f", "x");
  const auto refused = [&](const std::function<void(ModelCreation&)>& change) {
    ModelCreation creation{.name = "net", .content = {.files = {file}}};
    change(creation);
    const absl::Status status = models->Register(creation).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  };
  const auto named = [&](const std::string& path) {
    return ModelFile{path, file.sha256, file.bytes};
  };
  refused([](ModelCreation& c) { c.name = "a/b"; });
  refused([](ModelCreation& c) { c.name = ""; });
  refused([](ModelCreation& c) { c.version = "@latest"; });
  refused([](ModelCreation& c) { c.type = "uri_folder"; });
  refused([](ModelCreation& c) { c.type = "mlflow_model"; });
  refused([](ModelCreation& c) { c.stage = "a stage"; });
  refused([](ModelCreation& c) { c.description = std::string(100'000, 'x'); });
  refused([](ModelCreation& c) { c.tags[""] = "x"; });
  refused([](ModelCreation& c) { c.tags["x"] = std::string(10'000, 'x'); });
  refused([](ModelCreation& c) { c.properties[std::string(300, 'x')] = ""; });
  refused([](ModelCreation& c) { c.nonce = std::string(200, 'x'); });
  refused([](ModelCreation& c) { c.content.files.clear(); });
  refused([](ModelCreation& c) { c.content.files[0].sha256 = "../../../etc/passwd"; });
  refused([&](ModelCreation& c) { c.content.files = {named("../up")}; });
  refused([&](ModelCreation& c) { c.content.files = {named("/abs")}; });
  refused([&](ModelCreation& c) { c.content.files = {named("a"), named("a")}; });
  refused([&](ModelCreation& c) { c.content.files = {named("a/b/c"), named("a/b")}; });
  refused([&](ModelCreation& c) { c.content = {true, {named("a/b")}}; });
  refused([&](ModelCreation& c) { c.content = {true, {named("a"), named("b")}}; });
  refused([&](ModelCreation& c) { c.content.files.assign(kMostModelFiles + 1, file); });
  EXPECT_EQ(models->Count()->versions, 0);
}

TEST(DigestOf, KnowsOneContentFromAnother) {
  const ModelFile a{"a", Sha256("a"), 1}, b{"b", Sha256("b"), 1};
  const std::string digest = DigestOf({.files = {a, b}});
  EXPECT_EQ(digest, DigestOf({.files = {b, a}}));
  EXPECT_NE(digest, DigestOf({.files = {a}}));
  EXPECT_NE(DigestOf({.files = {a}}), DigestOf({.is_file = true, .files = {a}}));
  EXPECT_NE(digest, DigestOf({.files = {{"b", a.sha256, 1}, {"a", b.sha256, 1}}}));
}

// A child registers and is killed after that step; then the next process looks.
class KilledAtTest : public ModelsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  template <typename Work>
  void Kill(const Work& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto models = Open([](const char* step) {
        if (std::string(step) == GetParam()) ::kill(::getpid(), SIGKILL);
      });
      work(*models);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    was_killed_ = WIFSIGNALED(status);
  }
  bool was_killed_ = false;
};

TEST_P(KilledAtTest, LeavesAVersionWholeOrNotAtAll) {
  Kill([](RegisteredModels& models) {
    ModelCreation creation = Creation(models, "net", "one");
    creation.nonce = "n";
    models.Register(creation).IgnoreError();
    models.Delete("net", "", kNobody).IgnoreError();
  });
  ASSERT_TRUE(was_killed_);
  const auto models = Open();
  models->RemoveEarlier();
  const auto found = models->Find("net", "1");
  if (std::string(GetParam()) == "row") {
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*base::ReadFile(models->PathOf(*found) / "model.bin"), "one");
  } else {
    EXPECT_TRUE(absl::IsNotFound(found.status())) << found.status();
  }
  // The client tries again, with the same nonce where the version was not deleted.
  ModelCreation creation = Creation(*models, "net", "one");
  creation.nonce = "n";
  const auto again = models->Register(creation);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->version.version, "1");
  EXPECT_EQ(*base::ReadFile(models->PathOf(again->version) / "conf/a.json"), "{}");
  // What was left goes once it is old, and nothing else does.
  ASSERT_TRUE(models->Delete("net", "", kNobody).ok());
  for (const char* folder : {"files", "trees"}) MakeOld(folder);
  ASSERT_TRUE(models->RemoveOld().ok());
  EXPECT_EQ(CountFiles("files") + CountFiles("trees"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Steps, KilledAtTest, ::testing::Values("files", "tree", "row", "deleted"));

}  // namespace
}  // namespace tutti::service
