#include "platform/storage/transfer/kept_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>

#include "base/file.h"

namespace tutti::storage {
namespace {

class KeptListTest : public ::testing::Test {
 protected:
  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "list";
};

TEST_F(KeptListTest, ComesBackAsItWas) {
  Survey survey{"a/\"set\"", false, {}};
  for (int i = 0; i < 20'000; ++i) {  // more than is written at a time
    survey.objects.push_back({"train/\xC3\xA4 " + std::to_string(i), i, "e", "", 5.25 + i});
  }
  ASSERT_TRUE(KeepList(survey, file_).ok());
  const auto read = ReadKeptList(file_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->base, survey.base);
  EXPECT_FALSE(read->is_file);
  EXPECT_EQ(read->objects, survey.objects);
  EXPECT_EQ(DigestOf(read->objects, 1000), DigestOf(survey.objects, 1000));
  struct stat info = {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(KeptListTest, OfAFileAndOfNothingToo) {
  ASSERT_TRUE(KeepList({"set", true, {{"x.tar", 5}}}, file_).ok());
  EXPECT_TRUE(ReadKeptList(file_)->is_file);
  ASSERT_TRUE(KeepList({}, file_).ok());
  EXPECT_TRUE(ReadKeptList(file_)->objects.empty()) << "the former is replaced";
}

TEST_F(KeptListTest, OfOneThatTheDiskDoesNotTakeNothingStays) {
  Survey survey{"set", false, {}};
  for (int i = 0; i < 20'000; ++i) survey.objects.push_back({"train/" + std::to_string(i), i});
  ASSERT_TRUE(KeepList({"set", true, {{"x.tar", 5}}}, file_).ok());
  rlimit whole = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &whole), 0);
  const auto former = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {4096, whole.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status kept = KeepList(survey, file_);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &whole), 0);
  ::signal(SIGXFSZ, former);
  EXPECT_FALSE(kept.ok());
  EXPECT_TRUE(absl::IsNotFound(ReadKeptList(file_).status()));
}

TEST_F(KeptListTest, APartOfOneIsNone) {
  EXPECT_TRUE(absl::IsNotFound(ReadKeptList(file_).status()));
  ASSERT_TRUE(KeepList({"set", false, {{"a", 1}, {"b", 2}}}, file_).ok());
  const std::string whole = *base::ReadFile(file_);
  for (size_t bytes = 0; bytes < whole.size() - 1; ++bytes) {
    ASSERT_TRUE(base::WriteFileAtomic(file_, whole.substr(0, bytes)).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadKeptList(file_).status())) << bytes;
  }
  ASSERT_TRUE(base::WriteFileAtomic(file_, whole + "{\"done\":{\"objects\":2}}\n").ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadKeptList(file_).status()));
}

}  // namespace
}  // namespace tutti::storage
