#include "platform/service/results/folder_content.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/file.h"
#include "base/machine/folder.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

class FolderContentTest : public ::testing::Test {
 protected:
  // Leaves a file and a folder, as a killed process does at the top of another file system.
  void LeaveHalf() {
    const std::string name = ".incoming-0123456789abcdef-0123456789abcde";
    ASSERT_TRUE(IsArriving(name + "f"));
    Put(name + "f", "half");
    Put(name + "0/file", "half");
  }
  void Put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories((from_ / name).parent_path()).ok());
    ASSERT_TRUE(base::ReplaceFile(from_ / name, text).ok());
  }

  const base::TemporaryDirectory folder_;
  const fs::path from_ = folder_.path() / "from", to_ = folder_.path() / "to";
};

TEST_F(FolderContentTest, WhatArrivesDoesNotCount) {
  const std::atomic<bool> stop = false;
  FileDigests digests(&stop);
  Put("deep/weights", "whole");
  const std::string before = DigestOf(from_, digests).value();
  LeaveHalf();
  EXPECT_EQ(DigestOf(from_, digests).value(), before);
  Put(".incoming-of-a-user", "kept");
  EXPECT_NE(DigestOf(from_, digests).value(), before);
}

TEST_F(FolderContentTest, WhatArrivesIsNeitherLinkedNorCopied) {
  Put("deep/weights", "whole");
  Put(".incoming-of-a-user", "kept");
  LeaveHalf();
  for (auto* const put : {&LinkContent, &CopyContent}) {
    ASSERT_TRUE(put(from_, to_).ok());
    EXPECT_EQ(base::ReadFile(to_ / "deep/weights").value(), "whole");
    EXPECT_EQ(base::ReadFile(to_ / ".incoming-of-a-user").value(), "kept");
    EXPECT_EQ(base::NamesIn(to_).size(), 2u);
  }
}

}  // namespace
}  // namespace tutti::service
