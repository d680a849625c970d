#include "platform/engine/slurm/slurm_commands.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "base/test_patience.h"

namespace tutti::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RealSlurmCommands, KnowTheirClusterAndNothingOfTheJobThatTheyAreIn) {
  const std::vector<std::string> kept = {"SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS"};
  const std::vector<std::string> dropped = {
      "SLURM_JOB_ID",  "SLURM_TIME_FORMAT", "SBATCH_PARTITION", "SQUEUE_FORMAT",
      "SCANCEL_STATE", "SINFO_PARTITION",   "SACCT_FORMAT"};
  std::map<std::string, std::optional<std::string>> before;
  for (const auto* names : {&kept, &dropped}) {
    for (const std::string& name : *names) {
      const char* const value = std::getenv(name.c_str());
      before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::setenv(name.c_str(), "mine", 1);
    }
  }
  RealSlurmCommands commands;
  const auto ran =
      commands.Run({"env"}, base::Deadline::After(base::Patient(absl::Seconds(20))), false);
  for (const auto& [name, value] : before) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  ASSERT_TRUE(ran.ok() && ran->exit.ok());
  for (const std::string& name : kept) EXPECT_THAT(ran->out, HasSubstr(name + "=mine\n"));
  for (const std::string& name : dropped) EXPECT_THAT(ran->out, Not(HasSubstr(name)));
}

}  // namespace
}  // namespace tutti::engine
