#include "base/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

TEST(FindProgram, TakesTheFirstFolderThatHasItAndMayRunIt) {
  const TemporaryDirectory folder("tutti-path");
  const fs::path first = folder.path() / "first", second = folder.path() / "second";
  for (const fs::path& at : {first, second}) {
    ASSERT_TRUE(MakeDirectories(at).ok());
    ASSERT_TRUE(WriteFileAtomic(at / "tool", "#!/bin/sh\n").ok());
  }
  fs::permissions(first / "tool", fs::perms::owner_read);
  fs::permissions(second / "tool", fs::perms::owner_all);
  const std::string path = absl::StrCat(first.string(), ":", second.string());
  EXPECT_EQ(FindProgram("tool", {{"PATH", path}}).value(), (second / "tool").string());
  EXPECT_EQ(FindProgram("/no/tool", {{"PATH", path}}).value(), "/no/tool");
  const absl::Status missing = FindProgram("other", {{"PATH", path}}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), testing::HasSubstr(path));
}

TEST(FindProgram, LooksWhereDebianHasProgramsIfThereIsNoPath) {
  EXPECT_TRUE(FindProgram("sh", {}).ok());
}

TEST(BootId, StaysWhileTheMachineRuns) {
  EXPECT_EQ(BootId().size(), 36u);
  EXPECT_EQ(BootId(), BootId());
}

TEST(HostName, IsNotEmpty) { EXPECT_NE(HostName(), ""); }

}  // namespace
}  // namespace tutti::base
