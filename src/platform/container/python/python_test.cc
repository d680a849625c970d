#include "platform/container/python/python.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::container {
namespace {
using ::testing::HasSubstr;

// FindPythonOfMachine is a machine whose PATH has the Pythons that a test puts there, and a uv that
// knows no others.
class FindPythonOfMachine : public ::testing::Test {
 protected:
  FindPythonOfMachine() {
    ::setenv("PATH", bin_.path().c_str(), 1);
    ::setenv("HOME", folder_.path().c_str(), 1);
    ::unsetenv("PYENV_ROOT");
    ::setenv("UV_PYTHON_DOWNLOADS", "never", 1);
    Put("uv", "exit 2");
  }
  ~FindPythonOfMachine() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::setenv("HOME", home_.c_str(), 1);
    ::unsetenv("UV_PYTHON_DOWNLOADS");
  }

  void Put(const std::string& name, const std::string& script) {
    const std::filesystem::path file = bin_.path() / name;
    EXPECT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(file, "#!/bin/sh\n" + script + "\n", 0755).ok());
  }
  void PutPython(const std::string& name, const std::string& version) {
    Put(name, "echo " + version);
  }
  // Returns the name of the program, or what is wrong.
  std::string Find(const std::string& version) {
    const std::atomic<bool> cancelled = false;
    const auto found = FindPython(version, folder_.path(), cancelled);
    return found.ok() ? std::filesystem::path(*found).filename().string()
                      : std::string(found.status().message());
  }

  const std::string path_ = std::getenv("PATH"), home_ = std::getenv("HOME");
  const base::TemporaryDirectory bin_, folder_;
};

TEST_F(FindPythonOfMachine, OfARangeItIsPython3WhereThatFits) {
  PutPython("python3", "3.11.2");
  PutPython("python3.11", "3.11.2");
  PutPython("python3.12", "3.12.1");
  PutPython("python3.9", "3.9.18");
  EXPECT_EQ(Find(">=3.8"), "python3");
  EXPECT_EQ(Find(">3.9"), "python3");
  EXPECT_EQ(Find("3.9"), "python3.9");
}

TEST_F(FindPythonOfMachine, OfARangeItIsTheNewestWherePython3DoesNotFit) {
  PutPython("python3", "3.11.2");
  PutPython("python3.11", "3.11.2");
  PutPython("python3.10", "3.10.13");
  PutPython("python3.8", "3.8.18");
  PutPython("python3.9", "3.9.18");
  EXPECT_EQ(Find("<3.11"), "python3.10");
  EXPECT_EQ(Find(">=3.6,<3.9"), "python3.8");
  EXPECT_THAT(Find(">=3.12"), HasSubstr("Python >=3.12 is not on this machine"));
}

TEST_F(FindPythonOfMachine, OfPyenvsVersionsTheNewestThatFitsIsTaken) {
  PutPython("python3", "3.11.2");
  for (const std::string minor : {"10", "7", "8", "9"}) {
    const std::string bin = absl::StrCat("home/.pyenv/versions/3.", minor, ".1/bin/");
    PutPython(bin + "python3", absl::StrCat("3.", minor, ".1"));
    PutPython(absl::StrCat(bin, "python3.", minor), absl::StrCat("3.", minor, ".1"));
  }
  ::setenv("HOME", (bin_.path() / "home").c_str(), 1);
  EXPECT_EQ(Find(">=3.6,<3.9"), "python3.8");
  EXPECT_EQ(Find(">=3.8"), "python3");
}

TEST_F(FindPythonOfMachine, OneThatDoesNotRunIsPassedOver) {
  Put("python3.9", "exit 127");
  PutPython("python3.8", "3.8.18");
  EXPECT_EQ(Find("<3.11"), "python3.8");
  EXPECT_THAT(Find("3.9"), HasSubstr("Python 3.9 is not on this machine"));
}

TEST_F(FindPythonOfMachine, OneThatIsTooOldForUvIsNotTaken) {
  PutPython("python3", "3.6.8");
  PutPython("python3.6", "3.6.8");
  EXPECT_EQ(Find("3.6"), absl::StrCat("Python 3.6 (3.6.8 in ", (bin_.path() / "python3.6").string(),
                                      ") is too old: environments are made of Python 3.7 and newer "
                                      "ones"));
  EXPECT_THAT(Find(">=3.6"), HasSubstr("Python >=3.6 is not on this machine"));
}

}  // namespace
}  // namespace tutti::container
