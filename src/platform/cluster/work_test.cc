#include "platform/cluster/work.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/process/command.h"

namespace tutti::cluster {
namespace {

// Controller stands for a controller whose sinfo prints this, and ends with that code.
class Controller final : public Remote {
 public:
  explicit Controller(std::string nodes, int code = 0) : nodes_(std::move(nodes)), code_(code) {}
  absl::StatusOr<std::string> Run(const std::string&, absl::string_view script,
                                  base::Deadline deadline) override {
    base::ChildOptions options;
    options.arguments = {
        "/bin/sh", "-ec",
        absl::StrCat("sinfo() { echo '", nodes_, "'; return ", code_, "; }\n", script)};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    const auto result = base::RunCommand(options, "", deadline);
    if (!result.ok()) return result.status();
    return result->err.empty() ? absl::StatusOr<std::string>(result->out)
                               : absl::AbortedError(result->err);
  }

 private:
  const std::string nodes_;
  const int code_;
};

// Awaits the nodes m and n, of which sinfo prints `nodes`.
absl::StatusOr<std::map<std::string, std::string>> Awaited(const std::string& nodes) {
  Description description;
  description.controller = "n";
  description.nodes = {"m", "n"};
  std::vector<HostFacts> facts(2);
  facts[0].host = facts[0].name = "m";
  facts[1].host = facts[1].name = "n";
  Controller controller(nodes);
  return AwaitNodes(controller, description, facts, base::Deadline::After(absl::ZeroDuration()));
}

TEST(AwaitNodes, TakesEachStateInWhichANodeWorks) {
  for (const char* state : {"idle", "mixed", "mixed-", "planned", "allocated+", "completing"}) {
    const auto aside = Awaited(absl::StrCat("m|idle|Unknown|none\nn|", state, "|Unknown|none"));
    EXPECT_TRUE(aside.ok()) << state << ": " << aside.status();
    EXPECT_TRUE(aside->empty());
  }
}

TEST(AwaitNodes, NamesANodeThatDoesNotWork) {
  for (const char* state : {"idle*", "down", "drained*", "idle~"}) {
    const absl::Status status =
        Awaited(absl::StrCat("m|idle|Unknown|none\nn|", state, "|root|it smokes")).status();
    EXPECT_EQ(status.message().substr(0, status.message().find('\n')),
              absl::StrCat("n is ", state, " (it smokes);"));
  }
  EXPECT_THAT(Awaited("m|idle|Unknown|none\nn|drained|slurm|Low RealMemory").status().message(),
              testing::HasSubstr("n is drained (Low RealMemory)"));
}

TEST(AwaitNodes, WaitsForNoneThatSomeoneHasSetAside) {
  const auto aside = Awaited("m|draining|root|a new disk\nn|maint|Unknown|none");
  ASSERT_TRUE(aside.ok()) << aside.status();
  EXPECT_THAT(*aside, testing::ElementsAre(testing::Pair("m", "draining by root (a new disk)"),
                                           testing::Pair("n", "maint by Unknown (none)")));
}

TEST(AwaitNodes, TakesNoneForThereWhileTheControllerDoesNotAnswer) {
  Description description;
  description.controller = "n";
  const auto now = base::Deadline::After(absl::ZeroDuration());
  Controller dead("Unable to contact slurm controller", 1), alive("");
  EXPECT_EQ(AwaitNodes(dead, description, {}, now).status().message().substr(0, 62),
            "slurmctld does not answer: Unable to contact slurm controller\n");
  EXPECT_TRUE(AwaitNodes(alive, description, {}, now).ok());
}

}  // namespace
}  // namespace tutti::cluster
