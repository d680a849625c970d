#include "platform/launch/diagnosis/windows_line_ends.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

constexpr char kSaid[] = ": the file has Windows line ends (CRLF)";

// What programs print is in tests/jobs/reasons; here is what looks like it.
TEST(WindowsLineEndsTest, AreShownByTheWordsOfShellsAndNotByThoseOfData) {
  for (const char* shown : {"./a.sh: /bin/bash^M: bad interpreter: No such file or directory",
                            "ls: cannot access '/data'$'\\r': No such file or directory",
                            "$'\\r': command not found"}) {
    EXPECT_EQ(WithShownLineEnds(shown), std::string(shown) + kSaid);
  }
  for (const char* other :
       {"ValueError: could not convert string to float: '1\\r'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data\\\\raw.csv'",
        "KeyError: 'label\\r'", "a.sh: line 2: syntax error", ""}) {
    EXPECT_EQ(WithShownLineEnds(other), other);
  }
}

class ScriptsLineEnds : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view text) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, text).ok());
  }
  bool Says(const std::string& error) {
    const std::string said = WithLineEndsOfScript(error, folder_.path());
    EXPECT_TRUE(said == error || said == error + kSaid) << said;
    return said != error;
  }
  base::TemporaryDirectory folder_;
};

TEST_F(ScriptsLineEnds, AreSaidOfTheScriptThatTheShellNames) {
  Write("run.sh", "if true; then\r\n  ls\r\nfi\r\n");
  Write("unix.sh", "if true; then\n  printf 'a\\r\\n'\n");
  EXPECT_TRUE(Says("run.sh: line 4: syntax error: unexpected end of file"));
  EXPECT_TRUE(Says(folder_.path().string() + "/run.sh: line 2: --lr: command not found"));
  EXPECT_TRUE(Says("run.sh: 1: set: Illegal option -"));
  EXPECT_TRUE(Says("bash: ./run.sh: cannot execute: required file not found"));
  EXPECT_TRUE(Says("unix.sh: line 2: ./run.sh: cannot execute: required file not found"));
  EXPECT_TRUE(Says("sh: 1: ./run.sh: not found"));
  EXPECT_FALSE(Says("unix.sh: line 3: syntax error: unexpected end of file"));
  EXPECT_FALSE(Says("run.sh: error: unrecognized arguments: --lr")) << "no shell says so";
  EXPECT_FALSE(Says("none.sh: line 4: syntax error: unexpected end of file"));
}

TEST_F(ScriptsLineEnds, OfWhatIsElsewhereOrNoFileNothingIsSaid) {
  base::TemporaryDirectory elsewhere;
  ASSERT_TRUE(base::WriteFileAtomic(elsewhere.path() / "run.sh", "ls\r\n").ok());
  EXPECT_FALSE(Says("../" + elsewhere.path().filename().string() + "/run.sh: line 1: x"));
  EXPECT_FALSE(Says(elsewhere.path().string() + "/run.sh: line 1: x"));
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Says("pipe: line 1: x")) << "and it does not wait for a writer";
  EXPECT_FALSE(Says(": line 1: x"));
}

TEST_F(ScriptsLineEnds, AreSaidOnce) {
  Write("run.sh", "cd data\r\n");
  const std::string shown =
      WithShownLineEnds("run.sh: line 1: cd: $'data\\r': No such file or directory");
  EXPECT_EQ(WithLineEndsOfScript(shown, folder_.path()), shown);
}

}  // namespace
}  // namespace tutti::launch
