#include "platform/engine/local/launcher_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::engine {
namespace {

bool IsZombie(pid_t pid) {
  const auto stat = base::ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return true;
  const size_t after_name = stat->rfind(')');
  if (after_name == std::string::npos || after_name + 2 >= stat->size()) return true;
  const char state = (*stat)[after_name + 2];
  return state == 'Z' || state == 'X';
}

absl::Status Send(const LauncherProcess& process, int signal, int value) {
  const base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  // With the descriptor open the number cannot go to another process; so look whose it is only now.
  if (!pidfd.valid() || !IsAlive(process)) return absl::OkStatus();
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = value;
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, &info, 0) != 0 && errno != ESRCH) {
    return base::ErrnoStatus(absl::StrCat("signal launcher ", process.pid));
  }
  return absl::OkStatus();
}

}  // namespace

LauncherProcess ProcessOf(const base::ChildProcess& child) {
  return {child.pid(), base::ProcessStartTime(child.pid()).value_or(0)};
}

std::optional<LauncherProcess> ReadLauncherProcess(const std::filesystem::path& file) {
  const auto text = base::ReadFile(file, 4096);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer() ||
      !json.contains("start_time") || !json["start_time"].is_number_integer()) {
    return std::nullopt;
  }
  return LauncherProcess{json["pid"].get<pid_t>(), json["start_time"].get<uint64_t>()};
}

absl::Status WriteLauncherProcess(const std::filesystem::path& file,
                                  const LauncherProcess& process) {
  // Not durable: after a power failure there is no process to find. A torn file reads as none.
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_WRONLY | O_CREAT | O_TRUNC));
  return base::WriteAll(
      fd.get(),
      absl::StrCat("{\"pid\": ", process.pid, ", \"start_time\": ", process.start_time, "}\n"),
      file.string());
}

bool IsAlive(const LauncherProcess& process) {
  const auto start_time = base::ProcessStartTime(process.pid);
  return start_time.ok() && *start_time == process.start_time && !IsZombie(process.pid);
}

absl::Status AskToStop(const LauncherProcess& process, absl::Duration grace) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(grace);
  return Send(
      process, SIGTERM,
      static_cast<int>(std::clamp<int64_t>(milliseconds, 0, std::numeric_limits<int>::max())));
}

absl::Status KillAtOnce(const LauncherProcess& process) { return Send(process, SIGKILL, 0); }

}  // namespace tutti::engine
