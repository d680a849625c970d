// For tests of what reads stacks: processes to look into, and programs that are said to read them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {

class StacksFixture : public ::testing::Test {
 protected:
  ~StacksFixture() override {
    for (base::ChildProcess& child : children_) {
      child.SignalGroup(SIGKILL).IgnoreError();
      child.Wait(base::Deadline::After(base::Patient(absl::Seconds(20)))).IgnoreError();
    }
  }

  // Makes a program of the shell's that is found in tools().
  std::string Tool(const std::string& name, const std::string& script) const {
    const std::filesystem::path program = folder.path() / name;
    EXPECT_TRUE(base::WriteFileAtomic(program, "#!/bin/sh\n" + script, 0755).ok());
    return program.native();
  }
  std::string tools() const { return folder.path().native(); }

  // Starts a process, which ends with the test; it finds the tools.
  pid_t Start(std::vector<std::string> arguments) {
    base::ChildOptions options;
    options.arguments = std::move(arguments);
    options.environment = {{"PATH", absl::StrCat(tools(), ":/usr/bin:/bin")}};
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    children_.push_back(*std::move(child));
    const pid_t pid = children_.back().pid();
    // The kernel lets a parent go on a moment before the child's command can be read.
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      return !base::ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("").empty();
    }));
    return pid;
  }

  // Waits for a file that a tool makes.
  bool AwaitFile(const std::string& name) const {
    return base::AwaitPatiently(absl::Seconds(30),
                                [&] { return std::filesystem::exists(folder.path() / name); });
  }
  std::string Content(const std::string& name) const {
    return base::ReadFile(folder.path() / name).value_or("");
  }

  const base::TemporaryDirectory folder;
  std::atomic<bool> cancelled = false;

 private:
  std::vector<base::ChildProcess> children_;
};

}  // namespace tutti::launch
