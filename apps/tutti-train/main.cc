// tutti-train: trains a network for images, alone or as one rank of many.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/setup/machine_report.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"
#include "runtime/train/trainer.h"
#include "train_flags.h"

namespace tutti {
namespace {

enum ExitCode { kTrained = 0, kFailed = 1, kWrongInput = 2, kRankLost = 3, kDiverged = 4 };
constexpr int kStopped = 128 + SIGTERM;

volatile sig_atomic_t stop_wanted = 0;

// The first signal asks for a checkpoint and an orderly end; the second ends at once.
void StopAtTheNextStep() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_wanted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int ExitCodeOf(const absl::Status& status) {
  if (comm::LostRank(status)) return kRankLost;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDataLoss:
      return kWrongInput;
    case absl::StatusCode::kOutOfRange:
      return kDiverged;
    default:
      return kFailed;
  }
}

absl::StatusOr<train::Outcome> TrainAsRank(const train::Recipe& recipe) {
  TUTTI_ASSIGN_OR_RETURN(comm::GroupOptions group, comm::GroupOptionsFromEnvironment());
  // A resumed run shall equal one that was not interrupted, to the bit.
  group.deterministic = true;
  TUTTI_ASSIGN_OR_RETURN(auto communicator, comm::JoinGroup(group));
  train::TrainerContext context;
  context.out = stdout;
  context.terminal = isatty(STDOUT_FILENO) == 1;
  if (const char* file = std::getenv("TUTTI_METRICS_FILE")) context.metrics_file = file;
  context.mlflow = train::MlflowFromEnvironment(base::CurrentEnvironment());
  context.stop_wanted = [] { return stop_wanted != 0; };
  return train::Train(recipe, std::move(communicator), context);
}

int Report(const absl::Status& status) {
  std::fprintf(stderr, "tutti-train: %s\n", std::string(status.message()).c_str());
  return ExitCodeOf(status);
}

int Describe() {
  const auto report = train::DescribeMachine();
  if (!report.ok()) return Report(report.status());
  std::fputs(train::AsJson(*report).c_str(), stdout);
  return kTrained;
}

int Explain(const train::Recipe& recipe) {
  const auto group = comm::GroupOptionsFromEnvironment();
  if (!group.ok()) return Report(group.status());
  train::PrepareMachine(recipe.threads, /*gpu=*/false);
  const auto text = train::Explain(recipe, group->size > 1 ? group->size : 0);
  if (!text.ok()) return Report(text.status());
  std::fputs(text->c_str(), stdout);
  return kTrained;
}

int Main(int argc, char** argv) {
  base::StartLogging();
  const auto asked = ReadCommandLine(argc, argv);
  if (!asked.ok()) return Report(asked.status());
  if (const auto* show = std::get_if<ShowAndExit>(&*asked)) {
    std::fputs(show->text.c_str(), stdout);
    return kTrained;
  }
  if (std::holds_alternative<DescribeMachine>(*asked)) return Describe();
  if (const auto* explain = std::get_if<ExplainAndExit>(&*asked)) return Explain(explain->recipe);
  StopAtTheNextStep();
  const auto& recipe = std::get<train::Recipe>(*asked);
  const auto outcome = TrainAsRank(recipe);
  if (!outcome.ok()) return Report(outcome.status());
  if (!outcome->stopped) return kTrained;
  const char* const job = std::getenv("TUTTI_JOB_ID");
  // Steps and trials, whose names have a dot, are not submitted by themselves.
  const bool is_child = job != nullptr && absl::StrContains(job, ".");
  const std::string way = job == nullptr ? "--resume"
                          : is_child     ? absl::StrCat("tutti run FILE --resume ", job)
                                         : absl::StrCat("tutti job rerun ", job, " --resume");
  std::fprintf(stderr,
               "tutti-train: stopped on request after step %lld; a checkpoint is in "
               "%s/checkpoints, go on with %s\n",
               static_cast<long long>(outcome->step), recipe.output.c_str(), way.c_str());
  return kStopped;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::Main(argc, argv); }
