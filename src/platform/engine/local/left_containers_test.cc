#include "platform/engine/local/left_containers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <future>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "platform/container/job_containers.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

// Has one container, of the folder that the file "folder" names, until it is told to remove one. It
// fails as long as there is a file "error", and hangs as long as there is a file "hang".
constexpr char kPodman[] = R"sh(#!/bin/sh
here=${0%/*}
echo "$1" >>"$here/calls"
while [ -e "$here/hang" ]; do sleep 0.02; done
[ ! -e "$here/error" ] || { echo "Error: $(cat "$here/error")" >&2; exit 125; }
[ "$1" != rm ] || rm -f "$here/folder"
[ "$1" != ps ] || [ ! -e "$here/folder" ] || {
  folder=$(cat "$here/folder")
  printf '[{"Names": ["tutti-x-0"], "Labels": {"tutti.folder": "%s", "tutti.root": "%s"}}]' \
    "$folder" "${folder%/*/*}"
  exit
}
echo '[]'
)sh";

class LeftContainersTest : public ::testing::Test {
 protected:
  LeftContainersTest() {
    EXPECT_TRUE(base::MakeDirectories(bin_).ok());
    EXPECT_TRUE(base::MakeDirectories(folder_).ok());
    Write(bin_ / "podman", kPodman, 0755);
    ::setenv("PATH", absl::StrCat(bin_.string(), ":", path_).c_str(), 1);
  }
  ~LeftContainersTest() override { ::setenv("PATH", path_.c_str(), 1); }

  static void Write(const fs::path& file, const std::string& text, int mode = 0644) {
    ASSERT_TRUE(base::WriteFileAtomic(file, text, mode).ok());
  }
  bool IsThere() const { return fs::exists(bin_ / "folder"); }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory scratch_;
  const fs::path bin_ = scratch_.path() / "bin", root_ = scratch_.path() / "nodes",
                 folder_ = root_ / "n1/job.1";
};

TEST_F(LeftContainersTest, AFolderWithoutANoteIsNotHeld) {
  LeftContainers left;
  EXPECT_FALSE(left.Hold(folder_));
  EXPECT_FALSE(fs::exists(bin_ / "calls"));
}

TEST_F(LeftContainersTest, IsHeldUntilPodmanHasRemovedThemAndSaysWhyItHasNot) {
  LeftContainers left(absl::Milliseconds(10), absl::Milliseconds(50));
  ASSERT_TRUE(container::NoteContainers(folder_, {"tutti-x-0"}).ok());
  Write(bin_ / "folder", folder_.string());
  Write(bin_ / "error", "its storage is locked");
  EXPECT_TRUE(left.Hold(folder_));
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return left.Problem(folder_) == "podman rm: its storage is locked";
  }));
  EXPECT_TRUE(left.Hold(folder_));
  EXPECT_TRUE(IsThere());
  fs::remove(bin_ / "error");
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !left.Hold(folder_); }));
  EXPECT_FALSE(IsThere());
  ASSERT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return left.Problem(folder_).empty(); }));
}

TEST_F(LeftContainersTest, NobodyWaitsForAPodmanThatHangs) {
  const base::Deadline soon = base::Deadline::After(base::Patient(absl::Seconds(20)));
  {
    LeftContainers left;
    ASSERT_TRUE(container::NoteContainers(folder_, {"tutti-x-0"}).ok());
    Write(bin_ / "hang", "");
    EXPECT_TRUE(left.Hold(folder_));
    ASSERT_TRUE(
        base::AwaitPatiently(absl::Seconds(20), [&] { return fs::exists(bin_ / "calls"); }));
    EXPECT_TRUE(left.Hold(folder_)) << "at once";
  }
  EXPECT_FALSE(soon.Expired());
  EXPECT_TRUE(container::HasNoteOfContainers(folder_)) << "who comes next removes them";
}

// The next one's would run on for as long as podman takes.
TEST_F(LeftContainersTest, WhatRunsInThoseOfAllFoldersIsKilledAtOnce) {
  fs::copy_file("/bin/sh", bin_ / "conmon");
  const auto begin = [&](const std::string& name, const fs::path& folder) {
    EXPECT_TRUE(base::MakeDirectories(folder).ok());
    EXPECT_TRUE(container::NoteContainers(folder, {name}).ok());
    base::ChildOptions options{.arguments = {bin_ / "conmon", "-c", "sleep 600; true", "-n", name}};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    options.die_with_parent = true;
    return *base::ChildProcess::Start(options);
  };
  base::ChildProcess first = begin("tutti-x-0", folder_),
                     second = begin("tutti-y-0", root_ / "n2/y");
  for (const pid_t monitor : {first.pid(), second.pid()}) {
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                     [&] { return base::Descendants(monitor).size() == 1; }));
  }
  Write(bin_ / "hang", "");
  LeftContainers left;
  EXPECT_TRUE(left.Hold(folder_));
  EXPECT_TRUE(left.Hold(root_ / "n2/y"));
  for (base::ChildProcess* const monitor : {&first, &second}) {
    EXPECT_TRUE(monitor->Wait(base::Deadline::After(base::Patient(absl::Seconds(20)))).ok());
  }
}

// As with a process whose command line cannot be read: who asks holds the engine's lock.
TEST_F(LeftContainersTest, NobodyWaitsForWhatIsReadToKill) {
  const fs::path note = folder_ / "containers";
  ASSERT_EQ(::mkfifo(note.c_str(), 0600), 0);  // who reads it hangs
  LeftContainers left;
  std::future<bool> held = std::async(std::launch::async, [&] { return left.Hold(folder_); });
  EXPECT_EQ(held.wait_for(absl::ToChronoSeconds(base::Patient(absl::Seconds(20)))),
            std::future_status::ready);
  const auto writer = base::Open(note, O_RDWR);  // those that wait for one have it open then
  EXPECT_TRUE(writer.ok()) << writer.status();
  fs::remove(note);
  EXPECT_TRUE(held.get());
}

TEST_F(LeftContainersTest, ContainersWhoseFolderIsGoneAreRemoved) {
  LeftContainers left(absl::Milliseconds(10), absl::Milliseconds(50));
  Write(bin_ / "folder", (root_ / "n1/gone.1").string());
  Write(bin_ / "error", "its storage is locked");
  left.RemoveStray(root_);
  ASSERT_TRUE(
      base::AwaitPatiently(absl::Seconds(20), [&] { return !left.Problem(root_).empty(); }));
  fs::remove(bin_ / "error");
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return !IsThere(); }));
}

}  // namespace
}  // namespace tutti::engine
