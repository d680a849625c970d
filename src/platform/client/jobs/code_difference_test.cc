#include "platform/client/jobs/code_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CodeDifferenceTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  }
  CodeDifference Compare() const {
    const auto compared = CompareCode(folder_.path(), "job-1", "job-2",
                                      base::Deadline::After(base::Patient(absl::Seconds(20))));
    EXPECT_TRUE(compared.ok()) << compared.status();
    return compared.value_or(CodeDifference());
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(CodeDifferenceTest, NamesEachFileAndHowManyOfItsLines) {
  Write("job-1/train.py", "a\nb\nc\n");
  Write("job-2/train.py", "a\nB\nc\nd\n");
  Write("job-1/gone.py", "x\n");
  Write("job-2/sub/new file.py", "x\n");
  Write("job-1/weights", std::string(30, '\0'));
  Write("job-2/weights", std::string(50, '\0'));
  Write("job-1/same", "same\n");
  Write("job-2/same", "same\n");
  const CodeDifference difference = Compare();
  EXPECT_THAT(difference.files, ElementsAre("gone.py +0 -1", "sub/new file.py +1 -0",
                                            "train.py +2 -1", "weights (binary)"));
  EXPECT_THAT(difference.patch, HasSubstr("Bin 30 -> 50 bytes"));
  EXPECT_THAT(difference.patch, HasSubstr("--- job-1/train.py\n+++ job-2/train.py\n"));
  EXPECT_THAT(difference.patch, HasSubstr("-b\n+B\n c\n+d\n"));
}

TEST_F(CodeDifferenceTest, OfEqualCodeThereIsNone) {
  Write("job-1/train.py", "a\n");
  Write("job-2/train.py", "a\n");
  EXPECT_TRUE(Compare().files.empty());
  EXPECT_EQ(Compare().patch, "");
}

}  // namespace
}  // namespace tutti::client
