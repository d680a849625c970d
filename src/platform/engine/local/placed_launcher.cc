#include "platform/engine/local/placed_launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/engine/node_files.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kBeingRemoved = ".released-";

}  // namespace

Node PlacedLauncher::Occupied() const {
  Node node{.name = folder_.parent_path().filename().native()};
  if (part_.cores.empty()) return node;
  node.cores = part_.cores;
  node.memory_bytes = part_.memory_bytes;
  node.gpus = part_.gpus;
  return node;
}

bool PlacedLauncher::HasBegun() const { return IsThere(folder_ / "started"); }

bool PlacedLauncher::IsDone() const { return IsThere(folder_ / "done"); }

bool PlacedLauncher::HasPlan() const { return IsThere(folder_ / "plan.json"); }

bool PlacedLauncher::Alive() {
  if (child_ && child_->Wait(base::Deadline::After(absl::ZeroDuration())).ok()) child_.reset();
  const std::optional<LauncherProcess> found = child_ ? own_ : Find();
  // A launcher that notes its own end and stays is killed; if it outlives that, it counts as ended.
  if (found && ReadLauncherProcess(folder_ / "died") == found) Kill().IgnoreError();
  return found && !(killed_ && killed_->process == *found && killed_->patience.Expired());
}

std::optional<LauncherProcess> PlacedLauncher::Find() const {
  for (const char* file : {"launcher", "lock"}) {
    const auto process = ReadLauncherProcess(folder_ / file);
    if (process && IsAlive(*process)) return process;
  }
  return std::nullopt;
}

absl::Status PlacedLauncher::MakeFolder() const { return base::MakeDirectories(folder_); }

absl::Status PlacedLauncher::MakeFolderOf(const fs::path& ahead) const {
  if (!IsThere(folder_) && ::rename(ahead.c_str(), folder_.c_str()) == 0) return absl::OkStatus();
  return MakeFolder();
}

absl::Status PlacedLauncher::WritePlan(absl::string_view plan) const {
  const fs::path file = folder_ / "plan.json";
  const auto made_ahead = base::Open(file, O_WRONLY);
  struct stat info;
  if (made_ahead.ok() && ::fstat(made_ahead->get(), &info) == 0 && info.st_size == 0) {
    return base::WriteAll(made_ahead->get(), plan, file.string());
  }
  return base::ReplaceFile(file, plan, 0600);
}

absl::Status PlacedLauncher::Launch(base::ChildOptions options) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                         base::Open(folder_ / "launcher.log", O_WRONLY | O_CREAT | O_APPEND));
  options.directory = "/";
  options.stdout_fd = log.get();
  options.stderr_fd = log.get();
  options.new_session = true;
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  const LauncherProcess own = ProcessOf(child);
  Keep(std::move(child), own);
  // Should this not get onto the disk, the launcher's own lock file still tells of it.
  return WriteLauncherProcess(folder_ / "launcher", own);
}

void PlacedLauncher::Keep(base::ChildProcess child, const LauncherProcess& own) {
  child_ = std::move(child);
  own_ = own;
  launched_ = true;
}

absl::Status PlacedLauncher::TakeOver(base::ChildProcess launcher, const LauncherProcess& own) {
  Keep(std::move(launcher), own);
  // One that made the folder ahead has named itself there.
  if (ReadLauncherProcess(folder_ / "lock") == own) return absl::OkStatus();
  return WriteLauncherProcess(folder_ / "launcher", own);
}

// A launcher blocks the signal, then takes the lock, then looks for the file. So one that has the
// lock gets the signal, every other finds the file, and none is hit by a signal it cannot take yet.
absl::Status PlacedLauncher::Stop(absl::Duration grace) const {
  const absl::Status marked = base::Open(folder_ / "stop", O_WRONLY | O_CREAT).status();
  const auto process = ReadLauncherProcess(folder_ / "lock");
  if (process && IsAlive(*process)) return AskToStop(*process, grace);
  if (!absl::IsNotFound(marked)) return marked;
  return child_ ? AskToStop(own_, grace) : absl::OkStatus();  // its job has removed the folder
}

// A launcher is the subreaper of what it starts: all of that is below it.
absl::Status PlacedLauncher::Kill() {
  const std::optional<LauncherProcess> process = child_ ? own_ : Find();
  if (!process || (killed_ && killed_->process == *process)) return absl::OkStatus();
  const std::vector<pid_t> below = base::Descendants(process->pid);
  TUTTI_RETURN_IF_ERROR(KillAtOnce(*process));
  for (const pid_t pid : below) ::kill(pid, SIGKILL);
  killed_ = Killed{*process, base::Deadline::After(base::kUnkillable)};
  return absl::OkStatus();
}

absl::Status PlacedLauncher::Undo() {
  if (child_) {
    TUTTI_RETURN_IF_ERROR(child_->SignalGroup(SIGKILL));
    TUTTI_RETURN_IF_ERROR(child_->Wait(base::Deadline::After(absl::Seconds(10))).status());
    child_.reset();
  }
  return base::RemoveTree(folder_);
}

absl::Status PlacedLauncher::Remove(base::Janitor& janitor) const {
  return janitor.RenameAndRemove(folder_, kBeingRemoved);
}

bool PlacedLauncher::IsBeingRemoved(const fs::path& folder) {
  return absl::StartsWith(folder.filename().string(), kBeingRemoved);
}

}  // namespace tutti::engine
