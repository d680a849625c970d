#include "platform/service/results/sent_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

class SentResultsTest : public ::testing::Test {
 protected:
  // Returns the name under which the file of that node stands beside its own; "" if not so.
  std::string Send(const std::string& node, const std::string& name, const std::string& text) {
    const fs::path arrived = folder_.path() / ".arrived";
    EXPECT_TRUE(base::WriteFileAtomic(arrived, text).ok());
    const auto beside = sent_.Move(node, arrived, folder_.path() / name);
    EXPECT_TRUE(beside.ok()) << beside.status();
    EXPECT_FALSE(fs::exists(arrived));
    return beside.value_or(fs::path()).filename();
  }
  std::string Text(const std::string& name) {
    return base::ReadFile(folder_.path() / name).value_or("none");
  }

  base::TemporaryDirectory folder_;
  SentResults sent_;
};

TEST_F(SentResultsTest, KeepsFilesOfOneNameThatDiffer) {
  EXPECT_EQ(Send("n1", "final.json", "1"), "");
  EXPECT_EQ(Send("n2", "final.json", "2"), "final.n2.json");
  EXPECT_EQ(Send("n3", "final.json", "1"), "") << "it is equal";
  EXPECT_EQ(Text("final.json"), "1");
  EXPECT_EQ(Text("final.n2.json"), "2");
  EXPECT_EQ(Text("final.n3.json"), "none");
}

TEST_F(SentResultsTest, WhatANodeSendsAgainReplacesItsOwn) {
  Send("n1", "log", "1");
  Send("n2", "log", "2");
  EXPECT_EQ(Send("n1", "log", "1b"), "");
  EXPECT_EQ(Send("n2", "log", "2b"), "log.n2");
  EXPECT_EQ(Text("log"), "1b");
  EXPECT_EQ(Text("log.n2"), "2b");
}

TEST_F(SentResultsTest, TheNameBesideIsNobodyElses) {
  Send("n1", "a.n2.txt", "of n1");
  Send("n1", "a.txt", "1");
  EXPECT_EQ(Send("n2", "a.txt", "2"), "a.n2.2.txt");
  EXPECT_EQ(Text("a.n2.txt"), "of n1");
  const std::string longest = std::string(250, 'l') + ".txt";
  Send("n1", longest, "1");
  EXPECT_EQ(Send("n2", longest, "2").size(), 255u);
}

}  // namespace
}  // namespace tutti::service
