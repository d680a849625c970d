#include "platform/launch/process/process_name.h"

#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

class ProcessNameTest : public testing::Test {
 protected:
  // As the kernel puts them: "/bin/tutti", "standby", "/n1/.ahead", then the environment.
  char memory_[64] = "/bin/tutti\0standby\0/n1/.ahead\0HOME=/root";
  const char* argv_[3] = {memory_, memory_ + 11, memory_ + 19};
  std::string Shown() const { return std::string(memory_, 30); }
  std::string Behind() const { return memory_ + 30; }
};

TEST_F(ProcessNameTest, StandsWhereTheArgumentsStood) {
  NameProcess(3, argv_, {"tutti", "launch"}, "/n1/j.1");
  EXPECT_EQ(Shown(), std::string("tutti\0launch\0/n1/j.1\0\0\0\0\0\0\0\0\0\0", 30));
  EXPECT_EQ(Behind(), "HOME=/root");
}

TEST_F(ProcessNameTest, KeepsTheEndOfWhatIsTooLong) {
  NameProcess(3, argv_, {"tutti", "launch"}, "/home/of/somebody/nodes/n1/j.1/plan");
  EXPECT_EQ(Shown(), std::string("tutti\0launch\0odes/n1/j.1/plan\0", 30));
  EXPECT_EQ(Behind(), "HOME=/root");
}

TEST_F(ProcessNameTest, LeavesWhatHasNoRoom) {
  const std::string before = Shown();
  NameProcess(3, argv_, {"a word that is longer than all of it"}, "x");
  EXPECT_EQ(Shown(), before);
}

}  // namespace
}  // namespace tutti::launch
