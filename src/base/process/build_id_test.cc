#include "base/process/build_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process/command.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

TEST(BuildIdOfThisProgram, IsTheOneThatReadelfShows) {
  ChildOptions options;
  options.arguments = {"readelf", "--notes", "--wide",
                       std::filesystem::read_symlink("/proc/self/exe").string()};
  options.environment = CurrentEnvironment();
  const auto shown = RunCommand(options, "", Deadline::After(Patient(absl::Seconds(20))));
  ASSERT_TRUE(shown.ok() && shown->exit.ok()) << shown.status() << shown->err;
  EXPECT_GE(BuildIdOfThisProgram().size(), 16u);
  EXPECT_THAT(shown->out, testing::HasSubstr("Build ID: " + BuildIdOfThisProgram()));
}

}  // namespace
}  // namespace tutti::base
