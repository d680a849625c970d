#include "platform/launch/ranks/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/diagnosis/windows_line_ends.h"
#include "platform/launch/environment/part_binding.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/ranks/rank_command.h"
#include "platform/launch/staging/container_start.h"

namespace tutti::launch {
namespace {

constexpr int kUnknownEnd = 255;         // the exit code of a rank whose own is not known
constexpr size_t kLastOutput = 1 << 20;  // at most what a pipe can hold, whatever its size
// A program that ends of an exception may write what it had buffered for stdout after that.
constexpr absl::Duration kFlush = absl::Seconds(1);

// A shell that had started the process gives its signal as a code.
bool IsKilled(base::ExitStatus status) {
  return status.signal == SIGKILL || status.code == 128 + SIGKILL;
}

}  // namespace

int PreferAsOutOfMemoryVictim() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  [[maybe_unused]] const ssize_t n = ::write(fd, "500", 3);
  ::close(fd);
  return 0;
}

nlohmann::json StartOf(const spec::LaunchPlan& plan, int local_rank, const std::string& command,
                       const NodeFacts& facts) {
  const std::filesystem::path work = NodeFolders(plan.directory).work();
  const RankCommand start = RankCommandOf(command, EnvironmentOf(plan, local_rank, facts), work);
  return {{"rank", plan.node().first_rank + local_rank},
          {"arguments", start.arguments},
          {"environment", start.environment},
          {"directory", work.string()}};
}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Adopt(const spec::LaunchPlan& plan,
                                                                int local_rank, pid_t pid,
                                                                Spool* spool) {
  TUTTI_ASSIGN_OR_RETURN(OutputPipe out, OutputPipe::Open(&spool->Stdout(local_rank)));
  TUTTI_ASSIGN_OR_RETURN(OutputPipe err, OutputPipe::Open(&spool->Stderr(local_rank)));
  std::unique_ptr<RankProcess> rank(new RankProcess(plan.node().first_rank + local_rank,
                                                    NodeFolders(plan.directory).work(),
                                                    std::move(out), std::move(err)));
  rank->pid_ = pid;
  return rank;
}

void RankProcess::CloseWriteEnds() {
  out_.CloseWriteEnd();
  err_.CloseWriteEnd();
}

absl::StatusOr<std::unique_ptr<RankProcess>> RankProcess::Start(
    const spec::LaunchPlan& plan, int local_rank, const std::string& command,
    const NodeFacts& facts, const ProcessLimit& limit, Spool* spool) {
  TUTTI_ASSIGN_OR_RETURN(OutputPipe out, OutputPipe::Open(&spool->Stdout(local_rank)));
  TUTTI_ASSIGN_OR_RETURN(OutputPipe err, OutputPipe::Open(&spool->Stderr(local_rank)));
  base::ChildOptions options;
  options.directory = NodeFolders(plan.directory).work();
  if (facts.image.empty()) {
    RankCommand start =
        RankCommandOf(command, EnvironmentOf(plan, local_rank, facts), options.directory);
    options.arguments = std::move(start.arguments);
    options.environment = std::move(start.environment);
  } else {
    TUTTI_ASSIGN_OR_RETURN(ContainerStart start,
                           ContainerStartOf(plan, local_rank, command, facts));
    options.arguments = std::move(start.arguments);
    options.environment = std::move(start.environment);
  }
  options.stdout_fd = out.write_fd();
  options.stderr_fd = err.write_fd();
  options.die_with_parent = true;
  options.before_exec = [&limit, &options, view = facts.view.get(),
                         cores = RankCores(plan, local_rank)] {
    limit.Enter();
    PreferAsOutOfMemoryVictim();
    const int error = cores.Enter();
    return error != 0 || view == nullptr ? error : view->Enter(options.directory.c_str());
  };
  const int rank = plan.node().first_rank + local_rank;
  absl::StatusOr<base::ChildProcess> child = base::ChildProcess::Start(options);
  if (!child.ok()) {
    return base::Annotate(child.status(), absl::StrCat("rank ", rank, " could not be started"));
  }
  std::unique_ptr<RankProcess> process(
      new RankProcess(rank, options.directory, std::move(out), std::move(err)));
  process->CloseWriteEnds();
  process->pid_ = child->pid();
  process->child_ = *std::move(child);
  return process;
}

std::string RankProcess::OutOfMemory(base::ExitStatus status, bool stopped,
                                     KernelKills kernel_kills) const {
  if (!memory_reason_.empty()) return memory_reason_;
  return IsKilled(status) && !stopped && kernel_kills == KernelKills::kSome
             ? "out of memory: the kernel killed the process"
             : "";
}

void RankProcess::NoteBeforeStop() {
  for (OutputPipe* pipe : {&out_, &err_}) pipe->ReadLast(kLastOutput);
  error_before_stop_ = LastException(err_.tail());
  const bool went_on = out_.last_read() > err_.last_read() + kFlush;
  // One that still runs has caught the exception, whatever it has printed since.
  error_was_last_ = !went_on && python_ != PythonState::kRuns && EndsWithException(err_.tail());
}

void RankProcess::NoteStopRequest() {
  if (!stop_requested_) NoteBeforeStop();
  stop_requested_ = true;
}

nlohmann::json RankProcess::Reap(bool stopped, KernelKills kernel_kills) {
  const auto status = child_->Wait(base::Deadline::After(absl::Seconds(1)));
  if (status.ok()) return End(*status, stopped, kernel_kills);
  nlohmann::json fields = End({.code = kUnknownEnd}, stopped, kernel_kills);
  fields["last_error"] =
      absl::StrCat("its exit status could not be read: ", status.status().message());
  return fields;
}

nlohmann::json RankProcess::End(base::ExitStatus status, bool stopped, KernelKills kernel_kills) {
  ended_ = true;
  failed_ = !status.ok();
  for (OutputPipe* pipe : {&out_, &err_}) pipe->ReadLast(kLastOutput);
  std::string why = OutOfMemory(status, stopped, kernel_kills);
  const bool out_of_memory = !why.empty();
  if (!out_of_memory && !status.ok()) {
    why = WithLineEndsOfScript(LastError(err_.tail(), out_.tail()), work_);
  }
  nlohmann::json fields = {{"rank", rank_},           {"code", status.code},
                           {"signal", status.signal}, {"out_of_memory", out_of_memory},
                           {"stopped", stopped},      {"last_error", why}};
  const std::string read_only = ReadOnlyWrite(err_.tail(), out_.tail());
  if (!read_only.empty() && !absl::StrContains(why, read_only)) fields["read_only"] = read_only;
  const bool from_elsewhere = IsKilled(status) && !stopped && !out_of_memory;
  if (from_elsewhere && kernel_kills == KernelKills::kNone) fields["not_for_memory"] = true;
  if (stopped && !error_before_stop_.empty()) {
    fields["error_before_stop"] = error_before_stop_;
    if (error_was_last_) fields["error_was_last"] = true;
  }
  if (stopped && python_ == PythonState::kEnded) fields["python_ended"] = true;
  return fields;
}

}  // namespace tutti::launch
