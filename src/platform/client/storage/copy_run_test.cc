#include "platform/client/storage/copy_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "absl/strings/match.h"
#include "platform/client/storage/storage_side_fake.h"
#include "platform/storage/storage_fault.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

const std::atomic<bool> never = false;

class CopyRunTest : public ::testing::Test {
 protected:
  CopyRunTest() { options_.home = folder_.path() / "home"; }

  absl::Status Copy(StorageSide& from, StorageSide& to, TargetKind kind = TargetKind::kFolder) {
    const auto listing = from.List(true);
    if (!listing.ok()) return listing.status();
    const auto plan = PlanCopy(from.address(), *listing, to.address(), kind, {.recursive = true});
    if (!plan.ok()) return plan.status();
    auto journal = CopyJournal::Open(options_.home, from.address().text, to.address().text, never);
    if (!journal.ok()) return journal.status();
    const auto copied = RunCopy(from, to, *plan, *journal, options_);
    if (copied.ok()) copied_ = *copied;
    return copied.status();
  }
  std::map<std::string, std::string> FilesOf(const fs::path& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      files[entry.path().lexically_relative(folder).string()] =
          base::ReadFile(entry.path()).value();
    }
    return files;
  }

  base::TemporaryDirectory folder_;
  CopyOptions options_;
  Copied copied_;  // of the last copy that came to its end
};

// LocalSide is a folder of this machine from which a copy reads or to which it writes.
class LocalSide final : public StorageSide {
 public:
  explicit LocalSide(const fs::path& folder) {
    address_.text = address_.path = folder.string();
    address_.place.path = address_.path;
  }
  const StorageAddress& address() const override { return address_; }
  absl::StatusOr<Listing> List(bool) override {
    Listing listing{false, address_.path, {}};
    for (const auto& entry : fs::recursive_directory_iterator(address_.path)) {
      if (!entry.is_regular_file()) continue;
      listing.objects.push_back({.path = entry.path().lexically_relative(address_.path).string(),
                                 .bytes = static_cast<int64_t>(entry.file_size())});
    }
    return listing;
  }
  absl::Status Fetch(const std::string&, const std::vector<std::string>&, const fs::path&,
                     const BytesListener&) override {
    return absl::InternalError("nobody fetches from here");
  }
  absl::Status Put(const std::string&, const std::vector<std::string>&, const fs::path&,
                   const BytesListener&) override {
    return absl::InternalError("nobody puts files here");
  }
  absl::Status Remove(const std::string&, const std::vector<std::string>&) override {
    return absl::OkStatus();
  }
  absl::Status RemoveAll() override { return absl::OkStatus(); }

 private:
  StorageAddress address_;
};

TEST_F(CopyRunTest, IntoAFolderOfOthersNoLinkIsFollowed) {
  FakeSide from("x", "d", {{"d/a", "1"}, {"d/b/c", "22"}});
  const fs::path real = fs::canonical(folder_.path()), to_folder = real / "to";
  LocalSide to(to_folder);
  options_.is_contained = true;
  ASSERT_TRUE(base::MakeDirectories(to_folder).ok());
  ASSERT_TRUE(base::MakeDirectories(real / "outside").ok());
  fs::create_directory_symlink(real / "outside", to_folder / "b");
  EXPECT_THAT(std::string(Copy(from, to).message()), HasSubstr("to/b is a link or a file"));
  EXPECT_TRUE(fs::is_empty(real / "outside"));
  fs::remove(to_folder / "b");
  const absl::Status copied = Copy(from, to);
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_THAT(FilesOf(to_folder), UnorderedElementsAre(Pair("a", "1"), Pair("b/c", "22")));
}

TEST_F(CopyRunTest, BringsFilesDownWithTheirTimesAndLeavesNothingElse) {
  FakeSide from("x", "d", {{"d/a", "1"}, {"d/b/c", "22"}, {"e", "other"}});
  LocalSide to(folder_.path() / "to");
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_THAT(FilesOf(folder_.path() / "to"),
              UnorderedElementsAre(Pair("a", "1"), Pair("b/c", "22")));
  struct stat info = {};
  ASSERT_EQ(::stat((folder_.path() / "to/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mtime, 1700000000);
  for (const auto& [path, content] : FilesOf(options_.home)) {
    EXPECT_THAT(path, HasSubstr(".lock")) << content;
  }
}

TEST_F(CopyRunTest, SendsFilesUpFromWhereTheyLie) {
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / "from/b").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / "from/b/c", "22").ok());
  LocalSide from(folder_.path() / "from");
  FakeSide to("y", "e", {});
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_THAT(to.files(), ElementsAre(Pair("e/b/c", "22")));
}

TEST_F(CopyRunTest, RelaysBetweenStoresAndUnderAnotherName) {
  FakeSide from("x", "d/f", {{"d/f", "333"}});
  FakeSide to("y", "e/g", {});
  ASSERT_TRUE(Copy(from, to, TargetKind::kNothing).ok());
  EXPECT_THAT(to.files(), ElementsAre(Pair("e/g", "333")));
  EXPECT_THAT(from.calls(), ElementsAre("fetch f"));
  EXPECT_THAT(to.calls(), ElementsAre("put g"));
}

TEST_F(CopyRunTest, GoesOnWhereItWasCutOff) {
  options_.limits.files = 1;
  FakeSide from("x", "d", {{"d/1", "1"}, {"d/2", "2"}, {"d/3", "3"}});
  FakeSide to("y", "e", {});
  to.hook = [](const std::string& call) {
    return call == "put 3" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsUnavailable(Copy(from, to)));
  to.hook = nullptr;
  int64_t there = 0;
  options_.goes_on = [&](int64_t files) { there = files; };
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_EQ(there, 2);
  EXPECT_EQ(copied_.items.size(), 1u) << "what was there is not counted as copied";
  EXPECT_THAT(to.calls(), ElementsAre("put 1", "put 2", "put 3", "put 3"));
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_EQ(to.calls().size(), 7u) << "a copy that was whole is made anew";
}

TEST_F(CopyRunTest, WhatTheStoreListsAndDoesNotGiveIsLeftOutAndTheOthersCome) {
  FakeSide from("x", "d", {{"d/a", "1"}, {"d/end", "2"}, {"d/f", "3"}});
  int changes = 0;
  from.hook = [&](const std::string& call) {
    if (absl::StrContains(call, "end")) {
      return storage::AboutObject(absl::AbortedError("it was removed"), "end");
    }
    if (changes++ > 0) return absl::OkStatus();
    return storage::AboutObject(absl::AbortedError("it has changed"), "f");
  };
  const std::vector<LeftOut> end = {
      {"end", "end",
       "the store lists it, but does not give it: its "
       "key ends with /, or it was removed or has changed meanwhile"}};
  LocalSide here(folder_.path() / "to");
  const absl::Status copied = Copy(from, here);
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_THAT(FilesOf(folder_.path() / "to"), UnorderedElementsAre(Pair("a", "1"), Pair("f", "3")));
  EXPECT_EQ(copied_.left_out, end);
  EXPECT_EQ(copied_.items.size(), 2u);

  FakeSide to("y", "e", {});
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_THAT(to.files(), ElementsAre(Pair("e/a", "1"), Pair("e/f", "3")));
  EXPECT_EQ(copied_.left_out, end);

  FakeSide alone("x", "d", {{"d/end", "2"}});
  alone.hook = from.hook;
  EXPECT_TRUE(absl::IsAborted(Copy(alone, here)));
}

TEST_F(CopyRunTest, CopiesAgainWhatHasChangedOrIsGoneFromTheTarget) {
  options_.limits.files = 1;
  FakeSide from("x", "d", {{"d/1", "1"}, {"d/2", "2"}, {"d/3", "3"}});
  FakeSide to("y", "e", {});
  to.hook = [](const std::string& call) {
    return call == "put 3" ? absl::UnavailableError("away") : absl::OkStatus();
  };
  EXPECT_FALSE(Copy(from, to).ok());
  to.hook = nullptr;
  from.files()["d/1"] = "other";
  to.files().erase("e/2");
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_THAT(to.files(), ElementsAre(Pair("e/1", "other"), Pair("e/2", "2"), Pair("e/3", "3")));
}

TEST_F(CopyRunTest, CopiesAgainWhatHasNoTime) {
  FakeSide from("x", "d", {{"d/1", "one"}});
  FakeSide to("y", "e", {{"e/1", "old"}});  // of a copy that was cut off, from another job
  const CopyPlan plan{"d", "e", {{"1", "1", 3, /*modified=*/0}}};
  auto journal = CopyJournal::Open(options_.home, "job:ant/d", "s3://y/e", never);
  ASSERT_TRUE(journal.ok() && journal->Add(plan.items).ok());
  ASSERT_TRUE(RunCopy(from, to, plan, *journal, options_).ok());
  EXPECT_THAT(to.files(), ElementsAre(Pair("e/1", "one")));
}

TEST_F(CopyRunTest, TellsHowFarItIs) {
  FakeSide from("x", "d", {{"d/1", "1"}, {"d/2", "22"}});
  FakeSide to("y", "e", {});
  CopyProgress last;
  options_.progress = [&](const CopyProgress& now) { last = now; };
  ASSERT_TRUE(Copy(from, to).ok());
  EXPECT_EQ(last.files, 2);
  EXPECT_EQ(last.of_files, 2);
  EXPECT_EQ(last.bytes, 3);
  EXPECT_EQ(last.of_bytes, 3);
}

TEST(CopyJournal, TellsVersionsApart) {
  const CopyItem item{"a", "b", 3, 1.5};
  EXPECT_EQ(JournalLine(item), R"({"bytes":3,"modified":1500,"path":"b"})");
  CopyItem other = item;
  other.modified = 2;
  EXPECT_NE(JournalLine(item), JournalLine(other));
}

}  // namespace
}  // namespace tutti::client
