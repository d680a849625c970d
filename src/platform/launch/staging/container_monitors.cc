#include "platform/launch/staging/container_monitors.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"

namespace tutti::launch {
namespace {

constexpr int kPause = 5;  // ms

// The name of the container that a process monitors; "" if it monitors none.
std::string MonitoredBy(const std::filesystem::path& process) {
  const auto text = base::ReadFile(process / "cmdline");
  if (!text.ok()) return "";
  const std::vector<std::string> words = absl::StrSplit(*text, '\0');
  if (words.front() != "conmon" && !absl::EndsWith(words.front(), "/conmon")) return "";
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "-n") return words[i + 1];
  }
  return "";
}

std::vector<pid_t> MonitorsOf(const std::set<std::string>& containers) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    if (containers.contains(MonitoredBy(entry.path()))) found.push_back(pid);
  }
  return found;
}

}  // namespace

absl::Status EndMonitorsOf(const std::set<std::string>& containers, base::Deadline deadline) {
  while (true) {
    const std::vector<pid_t> monitors = MonitorsOf(containers);
    if (monitors.empty()) return absl::OkStatus();
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat(monitors.size(), " monitors of containers could not be ended"));
    }
    for (const pid_t monitor : monitors) {
      // A monitor that has gone leaves nothing by which what is below it would be found: held, it
      // neither goes nor starts anything before its own end.
      ::kill(monitor, SIGSTOP);
      for (const pid_t below : base::Descendants(monitor)) ::kill(below, SIGKILL);
      ::kill(monitor, SIGKILL);
    }
    ::poll(nullptr, 0, kPause);  // they are not our children: nothing tells when they have gone
  }
}

}  // namespace tutti::launch
