#include "platform/container/job_containers.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Stands for podman, the real one of which is in tests/jobs/test_containers.py. Its storage is
// files by the containers' names, each with what `ps --format=json` says of that one; it fails with
// what the file "error" says, if there is one.
constexpr char kPodmanWithContainers[] = R"sh(#!/bin/sh
here=${0%/*}
[ ! -e "$here/error" ] || { echo "Error: $(cat "$here/error")" >&2; exit 125; }
case "$1" in
  ps) printf '['; comma=; for file in "$here"/storage/*; do
        [ -e "$file" ] && { printf %s "$comma"; cat "$file"; comma=,; }; done; echo ']' ;;
  rm) for name; do case $name in -*|rm) ;; *) rm -f "$here/storage/$name" ;; esac; done ;;
esac
)sh";

class JobContainersTest : public ::testing::Test {
 protected:
  JobContainersTest() {
    EXPECT_TRUE(base::MakeDirectories(storage_).ok());
    EXPECT_TRUE(base::MakeDirectories(folder_).ok());
    EXPECT_TRUE(base::WriteFileAtomic(bin_ / "podman", kPodmanWithContainers, 0755).ok());
    ::setenv("PATH", absl::StrCat(bin_.string(), ":", path_).c_str(), 1);
  }
  ~JobContainersTest() override { ::setenv("PATH", path_.c_str(), 1); }

  // Begins a container as `podman run` with the labels of that folder does.
  void Begin(const std::string& name, const fs::path& folder) {
    const std::string labels =
        absl::StrCat("{\"tutti.folder\": \"", folder.string(), "\", \"tutti.root\": \"",
                     folder.parent_path().parent_path().string(), "\", \"other\": \"x\"}");
    Store(name, absl::StrCat("{\"Names\": [\"", name, "\"], \"Labels\": ", labels, "}"));
  }
  void Store(const std::string& name, const std::string& told) {
    ASSERT_TRUE(base::WriteFileAtomic(storage_ / name, told).ok());
  }
  void Fail(const std::string& error) {
    ASSERT_TRUE(base::WriteFileAtomic(bin_ / "error", error).ok());
  }
  std::vector<std::string> Stored() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(storage_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory scratch_;
  const fs::path bin_ = scratch_.path() / "bin", storage_ = bin_ / "storage";
  const fs::path root_ = scratch_.path() / "home, of one/nodes", folder_ = root_ / "n1/job.1";
};

TEST_F(JobContainersTest, ANameIsOfItsFolderAndRank) {
  const std::vector<std::string> names = JobContainerNames("job.1", folder_, 2);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[1], testing::MatchesRegex("tutti-job.1-[0-9a-f]+-1"));
  EXPECT_EQ(JobContainerNames("job.1", folder_, 2), names);
  EXPECT_THAT(JobContainerNames("job.1", root_ / "n2/job.1", 2), Not(Contains(names[0])));
  EXPECT_THAT(JobContainerLabels(folder_),
              ElementsAre(absl::StrCat("--label=tutti.folder=", folder_.string()),
                          absl::StrCat("--label=tutti.root=", root_.string())));
}

TEST_F(JobContainersTest, WhatALauncherHasLeftIsRemovedByItsNoteAndByItsLabels) {
  EXPECT_FALSE(HasNoteOfContainers(folder_));
  ASSERT_TRUE(NoteContainers(folder_, {"tutti-a-0", "tutti-a-1"}).ok());
  EXPECT_TRUE(HasNoteOfContainers(folder_));
  Store("tutti-a-0", "{}");  // which podman tells nothing of that could be read
  Begin("tutti-a-7", folder_);
  Begin("tutti-b-0", root_ / "n2/job.1");
  Store("users", "{\"Names\": [\"users\"], \"Labels\": null}");
  ASSERT_TRUE(RemoveLeftContainers(folder_, false).ok());
  EXPECT_THAT(Stored(), UnorderedElementsAre("tutti-b-0", "users"));
  EXPECT_FALSE(HasNoteOfContainers(folder_));
}

TEST_F(JobContainersTest, TheNoteStaysUntilPodmanHasRemovedThem) {
  ASSERT_TRUE(NoteContainers(folder_, {"tutti-a-0"}).ok());
  Begin("tutti-a-0", folder_);
  Fail("the storage is locked");
  const absl::Status failed = RemoveLeftContainers(folder_, false);
  EXPECT_EQ(failed.message(), "podman rm: the storage is locked");
  EXPECT_TRUE(HasNoteOfContainers(folder_));
  fs::remove(bin_ / "error");
  ASSERT_TRUE(RemoveLeftContainers(folder_, false).ok());
  EXPECT_FALSE(HasNoteOfContainers(folder_));
  EXPECT_THAT(Stored(), ElementsAre());
}

TEST_F(JobContainersTest, StrayOnesAreThoseOfTheRootThatNoNoteSpeaksOf) {
  ASSERT_TRUE(NoteContainers(folder_, {"tutti-a-0"}).ok());
  Begin("tutti-a-0", folder_);                                        // its launcher may live
  Begin("tutti-gone-0", root_ / "n1/gone.1");                         // its folder is not there
  Begin("tutti-other-0", scratch_.path() / "other/nodes/n1/gone.1");  // another service's
  const auto removed = RemoveStrayContainers(root_, false);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(*removed, 1u);
  EXPECT_THAT(Stored(), UnorderedElementsAre("tutti-a-0", "tutti-other-0"));
  EXPECT_EQ(*RemoveStrayContainers(root_, false), 0u);
}

TEST_F(JobContainersTest, WhatPodmanSaysThatIsNoListIsAnErrorAndAWaitForItCanBeGivenUp) {
  ASSERT_TRUE(base::WriteFileAtomic(bin_ / "podman", "#!/bin/sh\necho '[{'\n", 0755).ok());
  EXPECT_THAT(std::string(RemoveStrayContainers(root_, false).status().message()),
              HasSubstr("podman ps: "));
  ASSERT_TRUE(base::WriteFileAtomic(bin_ / "podman", "#!/bin/sh\nsleep 600\n", 0755).ok());
  EXPECT_TRUE(absl::IsCancelled(RemoveContainers({"tutti-a-0"}, true)));
  ASSERT_TRUE(NoteContainers(folder_, {"tutti-a-0"}).ok());
  EXPECT_TRUE(absl::IsCancelled(RemoveLeftContainers(folder_, true)));
  EXPECT_TRUE(HasNoteOfContainers(folder_));
}

}  // namespace
}  // namespace tutti::container
