#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/follow/interrupts.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/results/download.h"
#include "platform/client/results/event_files.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kBetweenRounds = absl::Seconds(10);
constexpr absl::Duration kPatienceWithNodes = absl::Seconds(30);
constexpr absl::Duration kTurn = absl::Milliseconds(100);
constexpr absl::Duration kGrace = absl::Seconds(5);

std::string HowToWriteEvents(const std::string& job, bool has_ended) {
  return absl::StrCat("job ", job, " has no event files", has_ended ? "" : " yet",
                      ", events.out.tfevents.* below outputs/: its script writes them by "
                      "tutti-train --tensorboard outputs/tb, or by torch.utils.tensorboard's "
                      "SummaryWriter(log_dir=\"outputs/tb\")");
}

// Keeps the jobs' event files in a folder, each job's in one of its name, by a thread of its own
// that ends once all jobs have.
class EventFolder {
 public:
  EventFolder(Context& context, std::vector<std::string> jobs, fs::path folder)
      : context_(context),
        service_(context.connect()),
        jobs_(std::move(jobs)),
        folder_(std::move(folder)),
        thread_([this] { Refresh(); }) {}
  ~EventFolder() {
    stop_.Notify();
    // A call may begin just now.
    while (!ended_.WaitForNotificationWithTimeout(kTurn)) service_.Interrupt();
    thread_.join();
  }

  // Waits so long for what there is at first; DeadlineExceeded if it has not come.
  absl::Status AwaitFirst(absl::Duration patience) {
    if (!first_.WaitForNotificationWithTimeout(patience)) return absl::DeadlineExceededError("");
    return first_status_;
  }

 private:
  void Refresh() {
    bool all_ended = false;
    first_status_ = BringAll(/*is_first=*/true, all_ended);
    const bool goes_on = first_status_.ok();
    first_.Notify();
    while (goes_on && !all_ended && !stop_.WaitForNotificationWithTimeout(kBetweenRounds)) {
      const absl::Status status = BringAll(/*is_first=*/false, all_ended);
      // A fetch that has failed is tried again, while TensorBoard shows what it has.
      if (!status.ok() && !stop_.HasBeenNotified()) SayOnce(std::string(status.message()));
    }
    ended_.Notify();
  }

  absl::Status BringAll(bool is_first, bool& all_ended) {
    size_t files = 0, ended = 0;
    std::string none;
    for (const std::string& job : jobs_) {
      TUTTI_ASSIGN_OR_RETURN(const fs::path folder, DestinationOf(folder_, job));
      TUTTI_ASSIGN_OR_RETURN(const EventFiles brought,
                             BringEventFiles(service_, job, folder, kPatienceWithNodes));
      files += brought.files;
      ended += brought.has_ended ? 1 : 0;
      if (!is_first) continue;
      if (!brought.note.empty()) context_.err << brought.note << std::endl;
      if (brought.files > 0) continue;
      none = HowToWriteEvents(job, brought.has_ended);
      if (jobs_.size() > 1 || !brought.has_ended) context_.err << none << std::endl;
    }
    all_ended = ended == jobs_.size();
    if (!is_first || files > 0 || !all_ended) return absl::OkStatus();
    return absl::NotFoundError(jobs_.size() == 1 ? none : "none of these jobs has event files");
  }

  void SayOnce(std::string message) {
    if (message == said_) return;
    said_ = std::move(message);
    context_.err << said_ << "; trying again" << std::endl;
  }

  Context& context_;
  ServiceClient service_;
  const std::vector<std::string> jobs_;
  const fs::path folder_;
  std::string said_;
  absl::Notification stop_, first_, ended_;
  absl::Status first_status_;  // before `first_` of the thread
  std::thread thread_;
};

// Returns what starts tensorboard: the one in PATH, or by uv, which fetches it.
absl::StatusOr<std::vector<std::string>> TensorBoardCommand(const fs::path& home) {
  const auto variables = base::CurrentEnvironment();
  if (const auto found = base::FindProgram("tensorboard", variables); found.ok()) {
    return std::vector<std::string>{*found};
  }
  auto uv = base::FindProgram("uv", variables);
  const std::string own = (home / "environments" / "uv" / "bin" / "uv").string();
  if (!uv.ok() && ::access(own.c_str(), X_OK) == 0) uv = own;
  // TensorBoard needs pkg_resources, which later ones no longer have.
  if (uv.ok()) {
    return std::vector<std::string>{*uv,           "tool",   "run",           "--from",
                                    "tensorboard", "--with", "setuptools<81", "tensorboard"};
  }
  return absl::NotFoundError(
      "tensorboard is not in PATH, nor is uv, which would fetch it: pip install tensorboard");
}

// Runs it until it ends, or the user ends it.
absl::StatusOr<ExitCode> RunTensorBoard(std::vector<std::string> command, Interrupts& interrupts) {
  base::ChildOptions options;
  options.arguments = std::move(command);
  options.environment = base::CurrentEnvironment();
  options.die_with_parent = true;
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  while (!interrupts.Take()) {
    const auto exit = child.Wait(base::Deadline::After(kTurn));
    if (absl::IsDeadlineExceeded(exit.status())) continue;
    TUTTI_RETURN_IF_ERROR(exit.status());
    if (exit->ok()) return ExitCode::kOk;
    return absl::InternalError(absl::StrCat("tensorboard ended with ", exit->ToString()));
  }
  TUTTI_RETURN_IF_ERROR(child.SignalGroup(SIGTERM));
  if (!child.Wait(base::Deadline::After(kGrace)).ok()) {
    TUTTI_RETURN_IF_ERROR(child.SignalGroup(SIGKILL));
    TUTTI_RETURN_IF_ERROR(child.Wait(base::Deadline::After(kGrace)).status());
  }
  return ExitCode::kOk;
}

}  // namespace

absl::StatusOr<ExitCode> TensorBoard(Context& context, const TensorBoardOptions& options) {
  std::vector<std::string> words = options.words;
  words.insert(words.end(), options.more.begin(), options.more.end());
  const auto arguments = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return absl::StartsWith(word, "-");
  });
  if (arguments == words.begin()) {
    return absl::InvalidArgumentError("name a job before --: tutti tensorboard last");
  }
  std::vector<std::string> jobs;
  ServiceClient service(context.connect());
  for (auto name = words.begin(); name != arguments; ++name) {
    TUTTI_ASSIGN_OR_RETURN(std::string id, ResolveJob(service, *name));
    if (std::find(jobs.begin(), jobs.end(), id) == jobs.end()) jobs.push_back(std::move(id));
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> command, TensorBoardCommand(context.home));
  const base::TemporaryDirectory folder("tutti-tensorboard");
  SignalInterrupts interrupts;
  EventFolder events(context, std::move(jobs), folder.path());
  absl::Status first = events.AwaitFirst(kTurn);
  while (absl::IsDeadlineExceeded(first) && !interrupts.Take()) first = events.AwaitFirst(kTurn);
  if (absl::IsDeadlineExceeded(first)) return ExitCode::kInterrupted;
  TUTTI_RETURN_IF_ERROR(first);
  command.insert(command.end(), {"--logdir", folder.path().string()});
  command.insert(command.end(), arguments, words.end());
  return RunTensorBoard(std::move(command), interrupts);
}

}  // namespace tutti::client
