#include "platform/service/results/sent_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/text/utf8.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

class SentResultsTest : public ::testing::Test {
 protected:
  // Returns "beside, of NODE" of the file that is now beside another one; "" if none is.
  std::string Send(int node, const std::string& name, const std::string& text) {
    const fs::path arrived = folder_.path() / ".arrived";
    EXPECT_TRUE(base::WriteFileAtomic(arrived, text).ok());
    const auto same = sent_.Move({node, absl::StrCat("n", node)}, arrived, folder_.path() / name);
    EXPECT_TRUE(same.ok()) << same.status();
    EXPECT_FALSE(fs::exists(arrived));
    if (!same.ok() || !*same) return "";
    return absl::StrCat((*same)->beside.filename().native(), ", of ", (*same)->beside_node);
  }
  std::string Text(const std::string& name) {
    return base::ReadFile(folder_.path() / name).value_or("none");
  }

  base::TemporaryDirectory folder_;
  SentResults sent_;
};

TEST_F(SentResultsTest, KeepsFilesOfOneNameThatDiffer) {
  EXPECT_EQ(Send(1, "final.json", "1"), "");
  EXPECT_EQ(Send(2, "final.json", "2"), "final.n2.json, of n2");
  EXPECT_EQ(Send(3, "final.json", "1"), "") << "it is equal";
  EXPECT_EQ(Text("final.json"), "1");
  EXPECT_EQ(Text("final.n2.json"), "2");
  EXPECT_EQ(Text("final.n3.json"), "none");
}

TEST_F(SentResultsTest, WhatANodeSendsAgainReplacesItsOwn) {
  Send(1, "log", "1");
  Send(2, "log", "2");
  EXPECT_EQ(Send(1, "log", "1b"), "");
  EXPECT_EQ(Send(2, "log", "2b"), "log.n2, of n2");
  EXPECT_EQ(Text("log"), "1b");
  EXPECT_EQ(Text("log.n2"), "2b");
}

TEST_F(SentResultsTest, TheNameBesideIsNobodyElses) {
  Send(1, "a.n2.txt", "of n1");
  Send(1, "a.txt", "1");
  EXPECT_EQ(Send(2, "a.txt", "2"), "a.n2.2.txt, of n2");
  EXPECT_EQ(Text("a.n2.txt"), "of n1");
  EXPECT_EQ(Send(2, "a.n2.txt", "own"), "a.n2.n2.txt, of n2");
}

TEST_F(SentResultsTest, ALongNameIsCutAtACharacterAndHasRoomForAnEnd) {
  std::string two_bytes = "x";
  for (int i = 0; i < 124; ++i) two_bytes += "é";
  for (const std::string& name : {two_bytes + ".json", "a." + std::string(253, 'e')}) {
    ASSERT_LE(name.size(), 255u);
    Send(1, name, "1");
    const std::string beside = Send(2, name, "2");
    const std::string file = beside.substr(0, beside.find(','));
    EXPECT_EQ(Text(file), "2");
    EXPECT_LE(file.size(), 255u - 13u);
    EXPECT_EQ(base::BoundedUtf8(file), file);
    EXPECT_TRUE(absl::StrContains(file, ".n2"));
  }
}

TEST_F(SentResultsTest, TheLowestNodesFileHasTheNameWhicheverComesFirst) {
  EXPECT_EQ(Send(3, "final.json", "3"), "");
  EXPECT_EQ(Send(2, "final.json", "2"), "final.n3.json, of n3");
  EXPECT_EQ(Send(1, "final.json", "1"), "final.n2.json, of n2");
  EXPECT_EQ(Send(3, "final.json", "3b"), "final.n3.json, of n3") << "it sends it again";
  EXPECT_EQ(Text("final.json"), "1");
  EXPECT_EQ(Text("final.n2.json"), "2");
  EXPECT_EQ(Text("final.n3.json"), "3b");
}

TEST_F(SentResultsTest, OfEqualFilesTheNameIsTheLowestNodes) {
  Send(3, "a", "same");
  EXPECT_EQ(Send(1, "a", "same"), "");
  EXPECT_EQ(Send(2, "a", "2"), "a.n2, of n2");
  EXPECT_EQ(Text("a"), "same");
}

TEST_F(SentResultsTest, WhereAFileWasTakenAwayTheNextOneHasItsPlace) {
  Send(2, "a", "2");
  fs::remove(folder_.path() / "a");
  Send(1, "a", "1");
  EXPECT_EQ(Text("a"), "1");
}

}  // namespace
}  // namespace tutti::service
