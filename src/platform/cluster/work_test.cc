#include "platform/cluster/work.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/command.h"

namespace tutti::cluster {
namespace {

// A controller whose sinfo tells of one node in this state.
class Controller final : public Remote {
 public:
  explicit Controller(std::string state) : state_(std::move(state)) {}
  absl::StatusOr<std::string> Run(const std::string&, absl::string_view script,
                                  base::Deadline deadline) override {
    base::ChildOptions options;
    options.arguments = {"/bin/sh", "-ec",
                         absl::StrCat("sinfo() { case \"$*\" in *is*) echo 'n is ", state_,
                                      " (none)';; *) echo 'n ", state_, "';; esac; }\n", script)};
    options.environment = {{"PATH", "/usr/bin:/bin"}};
    const auto result = base::RunCommand(options, "", deadline);
    if (!result.ok()) return result.status();
    return result->err.empty() ? absl::StatusOr<std::string>(result->out)
                               : absl::AbortedError(result->err);
  }

 private:
  const std::string state_;
};

absl::Status Awaited(const std::string& state) {
  Description description;
  description.controller = "n";
  description.nodes = {"n"};
  HostFacts facts;
  facts.host = facts.name = "n";
  Controller controller(state);
  return AwaitNodes(controller, description, {facts}, base::Deadline::After(absl::ZeroDuration()));
}

TEST(AwaitNodes, TakesEachStateInWhichANodeWorks) {
  for (const char* state : {"idle", "mixed", "mixed-", "planned", "allocated+", "completing"}) {
    EXPECT_TRUE(Awaited(state).ok()) << state << ": " << Awaited(state);
  }
}

TEST(AwaitNodes, NamesANodeThatDoesNotWork) {
  for (const char* state : {"idle*", "down", "drained", "idle~"}) {
    EXPECT_THAT(Awaited(state).message(), testing::HasSubstr(absl::StrCat("n is ", state)));
  }
}

}  // namespace
}  // namespace tutti::cluster
