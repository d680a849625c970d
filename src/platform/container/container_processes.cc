#include "platform/container/container_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/child_process.h"

namespace tutti::container {
namespace {

constexpr int kPause = 5;  // ms

using Words = std::vector<std::string>;

bool IsProgram(const Words& words, absl::string_view name) {
  return words.front() == name || absl::EndsWith(words.front(), absl::StrCat("/", name));
}

// Returns the name of the container that a process monitors; "" if it monitors none.
std::string MonitoredBy(const Words& words) {
  if (!IsProgram(words, "conmon")) return "";
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "-n") return words[i + 1];
  }
  return "";
}

// Returns the name of the container that a process runs; "" if it runs none.
std::string RunBy(const Words& words) {
  if (!IsProgram(words, "podman") || words.size() < 2 || words[1] != "run") return "";
  for (const absl::string_view word : words) {
    absl::string_view name = word;
    if (absl::ConsumePrefix(&name, "--name=")) return std::string(name);
  }
  return "";
}

// Anybody may give a process such a command line. Of one that has gone nothing is known.
bool IsOwn(const std::filesystem::path& process) {
  const std::string status = base::ReadFile(process / "status").value_or("");
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    uid_t user = 0;
    if (words.size() > 1 && words[0] == "Uid:") {
      return absl::SimpleAtoi(words[1], &user) && user == ::getuid();
    }
  }
  return false;
}

// Returns whether a process waits to become the first one of a container that works in that folder
// or below it; the folder may be gone.
bool WaitsIn(const std::filesystem::path& folder, const std::filesystem::path& process,
             const Words& words) {
  if (!IsProgram(words, "runc") || words.size() < 2 || words[1] != "init") return false;
  std::error_code error;
  const std::string at = std::filesystem::read_symlink(process / "cwd", error);
  return absl::StartsWith(absl::StrCat(absl::StripSuffix(at, " (deleted)"), "/"),
                          absl::StrCat(folder.native(), "/"));
}

// IsMeant decides about a process by its folder in /proc and its command line.
using IsMeant = std::function<bool(const std::filesystem::path&, const Words&)>;

// `containers` outlives it.
IsMeant AreIn(const std::set<std::string>& containers, std::string (*container_of)(const Words&)) {
  return [&containers, container_of](const std::filesystem::path&, const Words& words) {
    return containers.contains(container_of(words));
  };
}

std::vector<pid_t> ProcessesThat(const IsMeant& is_meant) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const auto text = base::ReadFile(entry.path() / "cmdline");
    if (!text.ok()) continue;
    const Words words = absl::StrSplit(*text, '\0');
    if (is_meant(entry.path(), words) && IsOwn(entry.path())) found.push_back(pid);
  }
  return found;
}

absl::Status EndAll(const IsMeant& is_meant, absl::string_view what, base::Deadline deadline) {
  while (true) {
    const std::vector<pid_t> processes = ProcessesThat(is_meant);
    if (processes.empty()) return absl::OkStatus();
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat(processes.size(), " ", what, " of containers could not be ended"));
    }
    for (const pid_t process : processes) {
      // One that has gone leaves nothing by which what is below it would be found: held, it neither
      // goes nor starts anything before its own end.
      ::kill(process, SIGSTOP);
      for (const pid_t below : base::Descendants(process)) ::kill(below, SIGKILL);
      ::kill(process, SIGKILL);
    }
    ::poll(nullptr, 0, kPause);  // they are not our children: nothing tells when they have gone
  }
}

}  // namespace

void KillWithin(const std::set<std::string>& containers) {
  for (const pid_t podman : ProcessesThat(AreIn(containers, &RunBy))) ::kill(podman, SIGKILL);
  for (const pid_t monitor : ProcessesThat(AreIn(containers, &MonitoredBy))) {
    for (const pid_t below : base::Descendants(monitor)) ::kill(below, SIGKILL);
  }
}

absl::Status EndPodmansOf(const std::set<std::string>& containers, base::Deadline deadline) {
  return EndAll(AreIn(containers, &RunBy), "podmans", deadline);
}

absl::Status EndMonitorsOf(const std::set<std::string>& containers, base::Deadline deadline) {
  return EndAll(AreIn(containers, &MonitoredBy), "monitors", deadline);
}

absl::Status EndWaitingIn(const std::filesystem::path& folder, base::Deadline deadline) {
  const auto waits = [&](const std::filesystem::path& process, const Words& words) {
    return WaitsIn(folder, process, words);
  };
  return EndAll(waits, "first processes", deadline);
}

}  // namespace tutti::container
