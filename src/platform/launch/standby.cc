#include "platform/launch/standby.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/launcher.h"
#include "platform/launch/node/claim.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/ranks/rank_process.h"
#include "platform/launch/staging/folders.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// The only line that comes, or "" at the end of the input or when told to end.
std::string AwaitLine(int fd, Signals& signals) {
  std::string line;
  char part[4096];
  while (!absl::EndsWith(line, "\n")) {
    pollfd waiting[2] = {{fd, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(waiting, 2, -1);
    if (waiting[1].revents != 0 && signals.Take()) return "";
    if (waiting[0].revents == 0) continue;
    const ssize_t n = ::read(fd, part, sizeof(part));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    line.append(part, static_cast<size_t>(n));
  }
  line.pop_back();
  return line;
}

// Makes what the launcher of a job with one rank opens before its process begins.
absl::Status MakeFiles(const NodeFolders& folders) {
  TUTTI_RETURN_IF_ERROR(MakeEmptyFolders(folders));
  TUTTI_RETURN_IF_ERROR(Spool::Open(folders.spool(), 0, 1).status());
  for (const fs::path& file : {folders.events(), folders.host_file()}) {
    TUTTI_RETURN_IF_ERROR(base::Open(file, O_WRONLY | O_CREAT).status());
  }
  // Empty, it is nobody's plan.
  TUTTI_RETURN_IF_ERROR(base::Open(folders.plan(), O_WRONLY | O_CREAT | O_TRUNC, 0600).status());
  return base::Open(folders.marker(), O_WRONLY | O_CREAT).status();
}

// Does what the launcher of a job is about to do, with a job that has nothing: whatever of the
// program, the libraries and the heap that needs comes into memory now.
absl::Status Rehearse(const NodeFolders& folders, const NodeFacts& facts) {
  spec::LaunchPlan plan;
  plan.allocation_id = plan.job_id = "none";
  plan.job_token = base::RandomHex(16);
  plan.directory = folders.root.string();
  plan.command = "true";
  plan.nodes.push_back(
      {.name = "none", .address = "127.0.0.1", .first_rank = 0, .process_count = 1});
  plan.environment.is_host = true;
  TUTTI_ASSIGN_OR_RETURN(plan, spec::LaunchPlanFromJson(spec::ToJson(plan)));
  // The job's own folder will have another path, and so another link.
  const absl::Cleanup unlink = [&plan] { RemoveShortScratch(plan); };
  NodeContext node{plan, nullptr, nullptr, nullptr, facts};
  TUTTI_RETURN_IF_ERROR(NodeHooks().Prepare(node, /*cancelled=*/false));
  StartOf(plan, 0, node.command, node.facts);
  const fs::path events = folders.root / "rehearsal.jsonl";
  TUTTI_ASSIGN_OR_RETURN(const auto log, EventLog::Open(events));
  log->Append("rehearsal", nlohmann::json::object());
  // To write anew what has content makes ext4 find blocks for it at once.
  std::error_code error;
  for (const fs::path& file : {events, folders.host_file()}) fs::remove(file, error);
  return absl::OkStatus();
}

// Brings the pages in that the launcher asks of the heap before its process begins.
void WarmHeap() {
  constexpr size_t kBytes = 96 << 10;  // below what malloc maps apart or gives back
  std::vector<char> pages(kBytes, 1);
  asm volatile("" : : "r"(pages.data()) : "memory");
}

absl::Status Redirect(int fd, const fs::path& file, int flags) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd opened, base::Open(file, flags));
  return ::dup2(opened.get(), fd) < 0 ? base::ErrnoStatus(file.string()) : absl::OkStatus();
}

absl::Status LogInto(const NodeFolders& folders) {
  TUTTI_RETURN_IF_ERROR(Redirect(STDERR_FILENO, folders.log(), O_WRONLY | O_CREAT | O_APPEND));
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return base::ErrnoStatus("launcher.log");
  return absl::OkStatus();
}

// The lock is a file of this launcher's own: one that waited here before may still hold its own.
absl::Status MakeFolder(const NodeFolders& folders, StandbyState& ahead) {
  // The node's own folder is not made: where that is away, nothing is to look as if it were there.
  std::error_code failure;
  fs::create_directory(folders.root, failure);
  if (failure) return base::ErrnoStatus(folders.root.native(), failure.value());
  TUTTI_RETURN_IF_ERROR(Rehearse(folders, *ahead.facts));
  TUTTI_RETURN_IF_ERROR(MakeFiles(folders));
  TUTTI_RETURN_IF_ERROR(LogInto(folders));
  fs::remove(folders.lock(), failure);
  TUTTI_ASSIGN_OR_RETURN(ahead.lock, TakeLock(folders));
  return absl::OkStatus();
}

absl::StatusOr<StandbyState> Prepare() {
  TUTTI_ASSIGN_OR_RETURN(Signals signals, Signals::Block());
  base::BootId();  // kept, as the next
  MostProcesses();
  return StandbyState{.signals = std::move(signals), .lock = {}, .facts = FactsOfThisNode()};
}

// Goes on as the launcher of `plan`, whatever has become of the folder made ahead.
absl::Status Launch(const std::string& plan, StandbyState ahead) {
  const NodeFolders folders(fs::path(plan).parent_path());
  if (!IsLockOf(folders, ahead.lock)) {
    ahead.lock.reset();
    TUTTI_RETURN_IF_ERROR(LogInto(folders));
  }
  TUTTI_RETURN_IF_ERROR(Redirect(STDIN_FILENO, "/dev/null", O_RDONLY));
  return RunLauncher(plan, {}, std::move(ahead));
}

}  // namespace

int RunStandby(const std::string& folder, const std::function<void(const std::string&)>& begins) {
  ::unsetenv("LD_BIND_NOW");  // for this program alone
  base::StartLogging("info");
  ReserveProcessLimit();
  const absl::Cleanup unlimited = [] { ReturnProcessLimit(); };
  absl::StatusOr<StandbyState> ahead = Prepare();
  if (!ahead.ok()) return 1;
  // The job's launcher makes what cannot be made now.
  if (!folder.empty()) MakeFolder(NodeFolders(folder), *ahead).IgnoreError();
  WarmHeap();
  const std::string plan = AwaitLine(STDIN_FILENO, *ahead->signals);
  if (plan.empty()) return 0;
  if (begins) begins(plan);
  const absl::Status status = Launch(plan, *std::move(ahead));
  if (!status.ok()) spdlog::error("{}", status.ToString());
  return status.ok() ? 0 : 1;
}

}  // namespace tutti::launch
