// Covers: incoming_file.cc.
#include "platform/service/results/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
#include "base/machine/folder.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;

class JobFilesTest : public ::testing::Test {
 protected:
  void Send(const char* path, const char* content, const char* running = "") {
    auto file = files_.Receive("j", path, running);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write(content).ok());
    ASSERT_TRUE((*file)->Commit().ok());
  }
  std::vector<std::string> Paths(const char* running = "") {
    std::vector<std::string> paths;
    const auto files = files_.List("j", running);
    for (const JobFile& file : *files) paths.push_back(file.path);
    return paths;
  }

  std::string Content(const char* path, const char* running) {
    const auto file = files_.Find("j", path, running);
    return file.ok() ? base::ReadFile(*file).value() : "none";
  }
  // Has the file come after all others.
  void MakeNew(const char* path) {
    std::filesystem::last_write_time(
        files_.FolderOf("j") / path,
        std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  }

  // The names in the hidden folders of the one with those of jobs.
  std::vector<std::string> BeingReceived() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(files_.FolderOf(""))) {
      if (entry.path().filename().native().front() != '.') continue;
      for (const std::string& name : base::NamesIn(entry.path())) names.push_back(name);
    }
    return names;
  }

  base::TemporaryDirectory folder_;
  JobFiles files_{folder_.path() / "jobs"};
  base::Janitor janitor_;
};

TEST_F(JobFilesTest, ListsAndFindsWhatWasSent) {
  Send("outputs/model/a.bin", "12345");
  Send("outputs/b", "");
  ASSERT_TRUE(base::MakeDirectories(files_.FolderOf("j") / "logs").ok());
  ASSERT_TRUE(base::WriteFileAtomic(files_.FolderOf("j") / "logs" / "rank-0.stdout", "x").ok());
  ASSERT_TRUE(base::WriteFileAtomic(files_.FolderOf("j") / "logs" / "arrivals", "x").ok());
  EXPECT_THAT(Paths(), ElementsAre("logs/rank-0.stdout", "outputs/b", "outputs/model/a.bin"));
  EXPECT_EQ(files_.List("j").value().at(2).bytes, 5u);
  const auto found = files_.Find("j", "outputs/model/a.bin");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(base::ReadFile(*found).value(), "12345");
  EXPECT_TRUE(absl::IsNotFound(files_.Find("j", "outputs/model").status()));
  EXPECT_TRUE(absl::IsNotFound(files_.Find("j", "logs/arrivals").status()));
}

TEST_F(JobFilesTest, ReplacesAFileAsAWhole) {
  Send("outputs/a", "old");
  auto file = files_.Receive("j", "outputs/a");
  ASSERT_TRUE((*file)->Write("new").ok());
  EXPECT_EQ(base::ReadFile(*files_.Find("j", "outputs/a")).value(), "old");
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(base::ReadFile(*files_.Find("j", "outputs/a")).value(), "new");
}

TEST_F(JobFilesTest, KeepsOfManyTogetherThoseThatMayBeThere) {
  Send("outputs/a", "old");
  std::filesystem::create_directory_symlink("/etc", files_.FolderOf("j") / "outputs" / "link");
  const auto kept = files_.ReceiveAll("j", {{"outputs/a", "new"},
                                            {"../x", "x"},
                                            {"outputs/link/x", "x"},
                                            {"outputs/deep/b", "b"},
                                            {"logs/rank-0.stdout", "x"}});
  ASSERT_TRUE(kept.ok()) << kept.status();
  std::vector<bool> ok;
  for (const absl::Status& status : *kept) ok.push_back(status.ok());
  EXPECT_THAT(ok, ElementsAre(true, false, false, true, false));
  EXPECT_THAT(Paths(), ElementsAre("outputs/a", "outputs/deep/b"));
  EXPECT_EQ(base::ReadFile(*files_.Find("j", "outputs/a")).value(), "new");
  EXPECT_THAT(BeingReceived(), ElementsAre());
}

TEST_F(JobFilesTest, LeavesNothingOfAnUploadThatBroke) {
  {
    auto file = files_.Receive("j", "outputs/a");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(BeingReceived().size(), 1u);
    EXPECT_THAT(Paths(), ElementsAre());
  }
  EXPECT_THAT(Paths(), ElementsAre());
  EXPECT_THAT(BeingReceived(), ElementsAre());
}

TEST_F(JobFilesTest, RefusesPathsThatLeaveTheFolder) {
  for (const char* path : {"", "/etc/passwd", "../x", "outputs/../../x", "outputs//x", "outputs/",
                           "outputs/./x", ".", "outputs/.."}) {
    EXPECT_FALSE(files_.Receive("j", path).ok()) << path;
    EXPECT_FALSE(files_.Find("j", path).ok()) << path;
  }
  EXPECT_FALSE(files_.Receive("j", absl::string_view("outputs/a\0b", 11)).ok());
  for (const char* path :
       {"logs/rank-0.stdout", "logs/rank-9/x", "logs/arrivals", "logs/arrivals/x", "logs"}) {
    EXPECT_FALSE(files_.Receive("j", path).ok()) << path;  // the service's own
  }
  EXPECT_FALSE(files_.Receive("j", "outputs/" + std::string(300, 'x')).ok());
}

TEST_F(JobFilesTest, DoesNotFollowLinks) {
  Send("outputs/a", "x");
  std::filesystem::create_directory_symlink("/etc", files_.FolderOf("j") / "outputs" / "link");
  EXPECT_TRUE(absl::IsNotFound(files_.Find("j", "outputs/link/passwd").status()));
  EXPECT_FALSE(files_.Receive("j", "outputs/link/x").ok());
  EXPECT_THAT(Paths(), ElementsAre("outputs/a"));
}

TEST_F(JobFilesTest, KeepsWhatARunningAllocationSendsApart) {
  Send("outputs/loss", "of an attempt before");
  Send("outputs/model", "kept");
  ASSERT_EQ(files_.ReceiveAll("j", {{"outputs/loss", "so far"}, {"../x", ""}}, "j.2")->size(), 2u);
  Send("outputs/model", "so far", "j.2");
  Send("outputs/new", "12", "j.2");
  MakeNew("running/j.2/outputs/loss");
  MakeNew("outputs/model");  // by a node that has ended since
  EXPECT_THAT(Paths(), ElementsAre("outputs/loss", "outputs/model"));
  EXPECT_THAT(Paths("j.2"), ElementsAre("outputs/loss", "outputs/model", "outputs/new"));
  EXPECT_THAT(Paths("j.3"), ElementsAre("outputs/loss", "outputs/model"));
  EXPECT_EQ(Content("outputs/loss", ""), "of an attempt before");
  EXPECT_EQ(Content("outputs/loss", "j.2"), "so far");
  EXPECT_EQ(Content("outputs/model", "j.2"), "kept");
  EXPECT_EQ(Content("outputs/new", "j.2"), "12");
  EXPECT_EQ(files_.List("j", "j.2")->at(2).bytes, 2u);
  EXPECT_EQ(Content("outputs/new", ""), "none");
  EXPECT_EQ(Content("running/j.2/outputs/new", "j.2"), "none");
  files_.RemoveRunning("j", "j.2", janitor_);
  files_.RemoveRunning("j", "j.2", janitor_);  // there is none
  EXPECT_THAT(Paths("j.2"), ElementsAre("outputs/loss", "outputs/model"));
  EXPECT_FALSE(std::filesystem::exists(files_.FolderOf("j") / "running"));
}

TEST_F(JobFilesTest, KeepsOfARunningAllocationWhatItHasStill) {
  for (const char* path : {"outputs/step-1", "outputs/a b", "outputs/new", "logs/own"}) {
    Send(path, "x", "j.2");
  }
  Send("outputs/step-1", "of an attempt before");
  for (const char* path : {"outputs/step-1", "outputs/a b", "logs/own"}) {
    std::filesystem::last_write_time(
        files_.FolderOf("j") / "running/j.2" / path,
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  files_.KeepOfRunning("j", "j.2", {"outputs/a%20b"}, absl::Hours(2));
  EXPECT_EQ(Paths("j.2").size(), 4u) << "all of it came since";
  files_.KeepOfRunning("j", "j.3", {}, absl::ZeroDuration());  // there is none
  files_.KeepOfRunning("j", "j.2", {"outputs/a%20b"}, absl::Minutes(1));
  EXPECT_THAT(Paths("j.2"), ElementsAre("outputs/a b", "outputs/new", "outputs/step-1"));
  EXPECT_EQ(Content("outputs/step-1", "j.2"), "of an attempt before");
}

TEST_F(JobFilesTest, RemovesAfterAStartWhatEndedAllocationsHadSent) {
  Send("outputs/late", "x", "j.1");
  Send("outputs/so-far", "x", "j.2");
  files_.ResumeRemoval(janitor_, [](const std::string& allocation) { return allocation == "j.1"; });
  EXPECT_THAT(Paths("j.1"), ElementsAre());
  EXPECT_THAT(Paths("j.2"), ElementsAre("outputs/so-far"));
}

TEST_F(JobFilesTest, TakesNoFileThatIsNotWantedAtItsEnd) {
  auto file = files_.Receive("j", "outputs/a", "j.2");
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->BeforeCommit([] { return absl::AbortedError("it has ended"); });
  EXPECT_TRUE(absl::IsAborted((*file)->Commit()));
  EXPECT_THAT(Paths("j.2"), ElementsAre());
}

TEST_F(JobFilesTest, DeletesInStepsThatCanBeTakenBack) {
  Send("outputs/a", "x");
  ASSERT_TRUE(files_.Hide("j").ok());
  EXPECT_THAT(Paths(), ElementsAre());
  EXPECT_THAT(files_.Hidden(), ElementsAre("j"));
  ASSERT_TRUE(files_.Restore("j").ok());
  EXPECT_THAT(Paths(), ElementsAre("outputs/a"));
  ASSERT_TRUE(files_.Hide("j").ok());
  ASSERT_TRUE(files_.Remove("j", janitor_).ok());
  EXPECT_THAT(files_.Hidden(), ElementsAre());
  EXPECT_TRUE(files_.Hide("none").ok());
}

}  // namespace
}  // namespace tutti::service
