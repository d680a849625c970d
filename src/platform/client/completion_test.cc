#include "platform/client/completion.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

CommandTree Tree() {
  CommandTree list{"list", "Show jobs"};
  list.options = {{{"-o", "--output"}, "Form", ArgumentKind::kWords, {"table", "json"}},
                  {{"--all"}, "All of the user's jobs"}};
  CommandTree stream{"stream", "Follow output"};
  stream.positional = ArgumentKind::kJob;
  CommandTree job{"job", "Jobs"};
  job.commands = {list, stream};
  CommandTree run{"run", "Run a job"};
  run.positional = ArgumentKind::kFile;
  CommandTree root{"tutti", ""};
  root.options = {{{"--home"}, "Folder", ArgumentKind::kFolder}};
  root.commands = {job, run};
  return root;
}

// Returns what bash offers after the words; a job is called "brave_ant".
std::vector<std::string> Offered(const std::string& words) {
  const base::TemporaryDirectory folder;
  EXPECT_TRUE(
      base::WriteFileAtomic(folder.path() / "script", *CompletionScript(Tree(), "bash")).ok());
  const auto out = base::Open(folder.path() / "out", O_WRONLY | O_CREAT);
  base::ChildOptions options;
  options.arguments = {"bash", "-c",
                       absl::StrCat("tutti() { echo brave_ant; }; . ./script; COMP_WORDS=(", words,
                                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tutti; "
                                    "printf '%s\\n' \"${COMPREPLY[@]}\"")};
  options.environment = {{"PATH", "/usr/bin:/bin"}};
  options.directory = folder.path();
  options.stdout_fd = out->get();
  auto child = base::ChildProcess::Start(options);
  EXPECT_TRUE(child.ok() &&
              child->Wait(base::Deadline::After(base::Patient(absl::Seconds(20)))).ok());
  return absl::StrSplit(*base::ReadFile(folder.path() / "out"), '\n', absl::SkipEmpty());
}

TEST(Completion, BashOffersCommandsAndOptions) {
  EXPECT_THAT(Offered("tutti j"), UnorderedElementsAre("job"));
  EXPECT_THAT(Offered("tutti ''"), UnorderedElementsAre("job", "run", "--home"));
  EXPECT_THAT(Offered("tutti job str"), UnorderedElementsAre("stream"));
  EXPECT_THAT(Offered("tutti --home /x job list --a"), UnorderedElementsAre("--all"));
}

TEST(Completion, BashOffersValuesJobsAndFiles) {
  EXPECT_THAT(Offered("tutti job list -o ''"), UnorderedElementsAre("table", "json"));
  EXPECT_THAT(Offered("tutti job list --output j"), UnorderedElementsAre("json"));
  EXPECT_THAT(Offered("tutti job stream br"), UnorderedElementsAre("brave_ant"));
  EXPECT_THAT(Offered("tutti run scr"), UnorderedElementsAre("script"));
}

TEST(Completion, EveryShellKnowsTheWholeTree) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = CompletionScript(Tree(), shell);
    ASSERT_TRUE(script.ok());
    for (const char* word : {"stream", "list", "output", "json", "home", "__complete jobs"}) {
      EXPECT_THAT(*script, HasSubstr(word)) << shell;
    }
  }
  EXPECT_EQ(CompletionScript(Tree(), "csh").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(UnknownCommand, SuggestsTheNearest) {
  EXPECT_EQ(UnknownCommand(Tree(), {"--home", "x", "job", "lst"}),
            "unknown command \"lst\" (did you mean \"list\"?)");
  EXPECT_EQ(UnknownCommand(Tree(), {"job", "list", "anything"}), "");
  EXPECT_EQ(UnknownCommand(Tree(), {}), "");
}

}  // namespace
}  // namespace tutti::client
