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

}  // namespace
}  // namespace tutti::engine
