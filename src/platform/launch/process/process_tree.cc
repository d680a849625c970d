#include "platform/launch/process/process_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/launch/process/own_children.h"

namespace tutti::launch {
namespace {

bool IsOf(pid_t pid, absl::string_view allocation_id, absl::string_view node) {
  if (EnvironmentVariableOf(pid, "TUTTI_ALLOCATION_ID") != allocation_id) return false;
  const std::string own = EnvironmentVariableOf(pid, "TUTTI_NODE_NAME");
  return node.empty() || own.empty() || own == node;
}

std::vector<pid_t> ProcessesOf(absl::string_view allocation_id, absl::string_view node) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == ::getpid()) continue;
    if (IsOf(pid, allocation_id, node)) found.push_back(pid);
  }
  return found;
}

// Podman, its monitor and the runtime that they call end when what they keep has ended, and clear
// up after it; one that was signalled meanwhile would leave the others waiting.
bool KeepsAContainer(pid_t pid) {
  const auto name = base::ReadFile(absl::StrCat("/proc/", pid, "/comm"), 64);
  return name.ok() && (*name == "conmon\n" || *name == "podman\n" || *name == "runc\n" ||
                       *name == "crun\n" || absl::StartsWith(*name, "runc:["));
}

// Nor any deeper: their orphans would have come to this subreaper.
bool HasNoChild() {
  siginfo_t info;
  const int which = WEXITED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD;
  return ::waitid(P_ALL, 0, &info, which) != 0 && errno == ECHILD;
}

}  // namespace

absl::Status BecomeSubreaper() {
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? absl::OkStatus()
                                                 : base::ErrnoStatus("PR_SET_CHILD_SUBREAPER");
}

bool EndingDescendants::Continue(const std::set<pid_t>& spared) {
  if (HasNoChild()) return true;
  const std::vector<pid_t> descendants = WithoutOwnChildren(base::Descendants(::getpid()));
  for (const pid_t pid : descendants) {
    if (kill_at_.Expired()) {
      ::kill(pid, SIGKILL);
    } else if (!spared.contains(pid) && !signalled_.contains(pid) && !KeepsAContainer(pid)) {
      signalled_.insert(pid);
      ::kill(pid, SIGTERM);
      ::kill(pid, SIGCONT);  // a stopped process could not act on it
    }
  }
  return descendants.empty();
}

std::string EnvironmentVariableOf(pid_t pid, absl::string_view name) {
  // A zombie's is empty, so it counts as ended.
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/environ"), 4 << 20);
  if (!text.ok()) return "";
  for (const absl::string_view entry : absl::StrSplit(*text, '\0')) {
    if (absl::StartsWith(entry, name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return "";
}

namespace {

// Reads the rank from the file of its metrics: processes that a rank starts may have a RANK of
// their own, and the only process of a job may have none.
bool RankByEnvironment(pid_t pid, int& rank) {
  const std::string file = EnvironmentVariableOf(pid, "TUTTI_METRICS_FILE");
  absl::string_view name = absl::string_view(file).substr(file.rfind('/') + 1);
  return absl::ConsumePrefix(&name, "rank-") && absl::ConsumeSuffix(&name, ".metrics") &&
         absl::SimpleAtoi(name, &rank);
}

}  // namespace

std::map<int, std::vector<pid_t>> ProcessesByRank(const std::vector<RankLeader>& leaders,
                                                  const std::vector<pid_t>& all) {
  std::map<int, std::vector<pid_t>> processes;
  std::set<pid_t> placed;
  const std::vector<base::ProcessParent> parents = base::ProcessParents();
  for (const RankLeader& leader : leaders) {
    std::vector<pid_t>& own = processes[leader.rank];
    own = base::DescendantsAmong(parents, leader.pid);
    own.push_back(leader.pid);
    placed.insert(own.begin(), own.end());
  }
  for (const pid_t pid : all) {
    int rank = -1;
    if (placed.contains(pid)) continue;
    if (RankByEnvironment(pid, rank)) processes[rank].push_back(pid);
  }
  return processes;
}

absl::Status EndProcessesOf(absl::string_view allocation_id, absl::string_view node,
                            base::Deadline deadline) {
  while (true) {
    const std::vector<pid_t> left = ProcessesOf(allocation_id, node);
    if (left.empty()) return absl::OkStatus();
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat(left.size(), " processes of the allocation could not be ended"));
    }
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::poll(nullptr, 0, 5);  // they are not our children: nothing tells when they have gone
  }
}

}  // namespace tutti::launch
