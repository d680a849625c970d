// Covers: base/process/packed_program.cc.
#include "platform/engine/slurm/program_snapshot.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgramSnapshot, RunsFromWhereItIsUnpackedWithTheLibrariesThatItBrought) {
  const base::TemporaryDirectory root("tutti-program");
  const auto name = PackThisProgram(root.path());
  ASSERT_TRUE(name.ok()) << name.status();
  const std::filesystem::path archive = root.path() / ("sha256-" + name->substr(7));
  const auto run = [&](std::vector<std::string> arguments) {
    base::ChildOptions options;
    options.arguments = std::move(arguments);
    options.environment = {{"PATH", "/usr/bin:/bin"},
                           {"LD_LIBRARY_PATH", root.path() / "lib"},
                           {"LD_TRACE_LOADED_OBJECTS", "1"}};
    options.directory = "/";
    return *base::RunCommand(std::move(options), "",
                             base::Deadline::After(base::Patient(absl::Seconds(60))));
  };
  base::ChildOptions tar;
  tar.arguments = {"tar", "-xzf", archive, "-C", root.path()};
  tar.environment = base::CurrentEnvironment();
  tar.directory = "/";
  ASSERT_TRUE(
      base::RunCommand(std::move(tar), "", base::Deadline::After(base::Patient(absl::Seconds(60))))
          ->exit.ok());
  // This test itself looks for its libraries where the environment says; tutti needs no such
  // hint.
  const base::CommandResult loaded = run({root.path() / "tutti"});
  EXPECT_THAT(loaded.out, HasSubstr("libstdc++.so.6 => " + (root.path() / "lib").native()));
  EXPECT_THAT(loaded.out, Not(HasSubstr("not found")));
  EXPECT_FALSE(std::filesystem::exists(root.path() / "lib/libc.so.6"));
  const auto again = PackThisProgram(root.path());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *name);
}

TEST(ProgramSnapshot, OfAnotherProgramHasWhatThatLoadsAndOfAScriptTheScriptAlone) {
  const base::TemporaryDirectory root("tutti-program");
  const auto list = [&](const std::string& name) {
    base::ChildOptions tar;
    tar.arguments = {"tar", "-tzf", root.path() / ("sha256-" + name.substr(7))};
    tar.environment = base::CurrentEnvironment();
    tar.directory = "/";
    return base::RunCommand(std::move(tar), "",
                            base::Deadline::After(base::Patient(absl::Seconds(60))))
        ->out;
  };
  const auto own =
      PackProgramOf("test", std::filesystem::read_symlink("/proc/self/exe"), root.path());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_THAT(list(*own), HasSubstr("lib/libstdc++.so.6\n"));
  EXPECT_THAT(list(*own), Not(HasSubstr("libc.so")));
  const std::filesystem::path script = root.path() / "script.sh";
  ASSERT_TRUE(base::ReplaceFile(script, "#!/bin/sh\ntrue\n").ok());
  const auto of_script = PackProgramOf("script", script, root.path());
  ASSERT_TRUE(of_script.ok()) << of_script.status();
  EXPECT_EQ(list(*of_script), "script\n");
  EXPECT_EQ(*PackProgramOf("script", script, root.path()), *of_script);
  EXPECT_FALSE(PackProgramOf("none", root.path() / "none", root.path()).ok());
}

}  // namespace
}  // namespace tutti::engine
