#include "platform/launch/diagnosis/python_frame.h"

#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

TEST(PythonFrame, IsReadOfATracebackAndOfTheFaultHandler) {
  for (const char* line :
       {"  File \"/w/a b.py\", line 31, in load", "  File \"/w/a b.py\", line 31 in load"}) {
    const auto frame = FrameIn(line);
    ASSERT_TRUE(frame.has_value()) << line;
    EXPECT_EQ(frame->path, "/w/a b.py");
    EXPECT_EQ(frame->file(), "a b.py");
    EXPECT_EQ(frame->line, "31");
    EXPECT_EQ(frame->function, "load");
  }
}

TEST(PythonFrame, OfASyntaxErrorHasNoFunction) {
  const auto frame = FrameIn("  File \"train.py\", line 3");
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->file(), "train.py");
  EXPECT_EQ(frame->line, "3");
  EXPECT_EQ(frame->function, "");
}

TEST(PythonFrame, OtherLinesAreNone) {
  for (const char* line : {"", "    load()", "  File \"a\"", "ValueError: File \"a\", line 3"}) {
    EXPECT_FALSE(FrameIn(line).has_value()) << line;
  }
}

}  // namespace
}  // namespace tutti::launch
