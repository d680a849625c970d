#include "platform/file_server/served_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/file_server/ganesha.h"
#include "platform/file_server/served_path.h"
#include "spdlog/spdlog.h"

namespace tutti::file_server {
namespace fs = std::filesystem;
namespace {

constexpr absl::Duration kPatienceOfKill = absl::Seconds(10);

// Waits until the process has ended; false if it has not by the deadline.
bool Ended(int pidfd, base::Deadline deadline) {
  pollfd ready = {.fd = pidfd, .events = POLLIN, .revents = 0};
  while (true) {
    const auto left =
        absl::ToInt64Milliseconds(std::max(deadline.Remaining(), absl::ZeroDuration()));
    const int n = ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;
    if (n == 0 && deadline.Expired()) return false;
  }
}

base::Deadline Now() { return base::Deadline::After(absl::ZeroDuration()); }

}  // namespace

absl::StatusOr<ServerProcess> ServerProcess::Start(const base::ChildOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  TUTTI_ASSIGN_OR_RETURN(const uint64_t start_time, base::ProcessStartTime(child.pid()));
  ServerProcess process(child.pid(), start_time, base::UniqueFd());
  process.child_ = std::move(child);
  return process;
}

// The descriptor is opened first, so that what is looked at then is the process that it names, and
// no other of that id.
std::optional<ServerProcess> ServerProcess::Find(pid_t pid, uint64_t start_time) {
  if (pid <= 0) return std::nullopt;
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.get() < 0) return std::nullopt;
  const auto started = base::ProcessStartTime(pid);
  if (!started.ok() || *started != start_time) return std::nullopt;
  ServerProcess process(pid, start_time, std::move(pidfd));
  if (!process.IsAlive()) return std::nullopt;
  return process;
}

bool ServerProcess::IsAlive() {
  if (child_) return absl::IsDeadlineExceeded(child_->Wait(Now()).status());
  return !Ended(pidfd_.get(), Now());
}

std::string ServerProcess::HowItEnded() {
  if (!child_) return "";
  const auto ended = child_->Wait(Now());
  return ended.ok() ? ended->ToString() : "";
}

absl::Status ServerProcess::End(base::Deadline deadline) {
  const int pidfd = child_ ? child_->pidfd() : pidfd_.get();
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (!IsAlive()) return absl::OkStatus();
    if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0 && errno != ESRCH) {
      return base::ErrnoStatus(absl::StrCat("end process ", pid_));
    }
    if (Ended(pidfd, signal == SIGTERM ? deadline : base::Deadline::After(kPatienceOfKill))) {
      IsAlive();  // takes a child's status
      return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " does not end"));
}

namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(1), kLongestPause = absl::Minutes(1);
// One that has run so long begins with a short pause again.
constexpr absl::Duration kHasRunWell = absl::Minutes(1);
constexpr absl::Duration kPatienceOfEnd = absl::Seconds(10);
constexpr uint64_t kMostOfLog = 2 * kLongestLog;

constexpr char kStarting[] = "starting", kRunning[] = "running", kFailed[] = "failed";

// Checks that the folder is still no link: the owner of a folder above it may have put one in its
// place since it was allowed. `noted` is as in ServerFolder.
absl::Status CheckFolder(const fs::path& folder, const fs::path& noted) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path real,
                         ServedPath(folder, noted.parent_path().parent_path()));
  if (real == folder) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("folder ", folder.native(), " leads to ", real.native(),
                   " by a link: if that is to be served, create the file server again"));
}

}  // namespace

ServedFolder::ServedFolder(fs::path folder, std::string program, const base::Clock* clock)
    : folder_(std::move(folder)),
      program_(std::move(program)),
      clock_(clock),
      pause_(kFirstPause, kLongestPause) {
  const auto former = ReadServerState(folder_);
  if (!former.ok()) return;
  state_ = *former;
  process_ = ServerProcess::Find(state_.pid, state_.start_time);
  config_ = base::ReadFile(folder_ / "ganesha.conf").value_or("");
  started_ = clock_->SinceBoot();
}

absl::Status ServedFolder::Note(const std::string& state, const std::string& error) {
  ServerState next = state_;
  next.state = state;
  next.error = error;
  next.pid = process_ ? process_->pid() : 0;
  next.start_time = process_ ? process_->start_time() : 0;
  if (next == state_ && is_noted_) return absl::OkStatus();
  if (next.state != state_.state) next.since = absl::ToUnixSeconds(clock_->Now());
  state_ = next;
  absl::Status written = WriteServerState(folder_, state_);
  const bool was_noted = std::exchange(is_noted_, written.ok());
  if (was_noted && !is_noted_) {
    spdlog::warn("file server {}: {}", folder_.filename().native(), written.ToString());
  }
  return written;
}

void ServedFolder::Fail(const std::string& why) {
  if (clock_->SinceBoot() - started_ >= kHasRunWell) pause_.Reset();
  not_before_ = clock_->SinceBoot() + pause_.Next();
  if (state_.error != why) spdlog::warn("file server {}: {}", folder_.filename().native(), why);
  Note(kFailed, why).IgnoreError();  // as logged
}

std::string ServedFolder::Log() const {
  return base::ReadFile(folder_ / "ganesha.log", kMostOfLog).value_or("");
}

// The process has the file open, to append to it, and goes on where its end is. A disk that is full
// has room again.
void ServedFolder::ShortenLog() const {
  const fs::path log = folder_ / "ganesha.log", former = folder_ / "ganesha.log.1";
  std::error_code error;
  const uintmax_t size = fs::file_size(log, error);
  if (error || size < kLongestLog) return;
  fs::copy_file(log, former, fs::copy_options::overwrite_existing, error);
  if (error) fs::remove(former, error);
  fs::resize_file(log, 0, error);
  if (error) spdlog::warn("{} cannot be shortened: {}", log.native(), error.message());
}

std::string ServedFolder::WhyItEnded() {
  const std::string how = process_->HowItEnded();
  const std::string reason = ReasonInLog(Log());
  return absl::StrCat(program_, " has ended", how.empty() ? "" : " with ", how,
                      reason.empty() ? "" : ": ", reason);
}

absl::Status ServedFolder::Start(const spec::FileServer& server, const std::string& config) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_ / "recovery"));
  TUTTI_RETURN_IF_ERROR(CheckFolder(server.folder, folder_));
  std::error_code error;
  fs::permissions(folder_, fs::perms::owner_all, error);
  // The state is noted first, so that nobody who sees the new configuration takes the former state
  // for its own.
  Note(kStarting, state_.error).IgnoreError();  // as logged; once it runs it must be noted
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / "ganesha.conf", config, 0600));
  config_ = config;
  fs::rename(folder_ / "ganesha.log", folder_ / "ganesha.log.1", error);
  TUTTI_ASSIGN_OR_RETURN(
      const base::UniqueFd log,
      base::Open(folder_ / "ganesha.log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  base::ChildOptions options;
  options.arguments = {program_, "-F",
                       "-L",     "STDERR",
                       "-f",     (folder_ / "ganesha.conf").native(),
                       "-p",     (folder_ / "ganesha.pid").native()};
  options.environment = base::CurrentEnvironment();
  options.stdout_fd = log.get();
  options.stderr_fd = log.get();
  options.new_session = true;
  TUTTI_ASSIGN_OR_RETURN(process_, ServerProcess::Start(options));
  started_ = clock_->SinceBoot();
  return absl::OkStatus();
}

// A definition that has changed is served at once, whatever the pause.
void ServedFolder::Look(const spec::FileServer& server) {
  const std::string config = GaneshaConfig(server, folder_ / "recovery");
  const bool is_other = config != config_;
  if (!is_noted_) Note(state_.state, state_.error).IgnoreError();  // as logged
  if (process_ && process_->IsAlive()) {
    if (!is_other) {
      if (state_.state == kRunning) ShortenLog();
      if (state_.state != kRunning && ServesByLog(Log())) Note(kRunning, "").IgnoreError();
      return;
    }
    if (const auto ended = process_->End(base::Deadline::After(kPatienceOfEnd)); !ended.ok()) {
      return Fail(std::string(ended.message()));
    }
    process_.reset();
  } else if (process_ || state_.pid != 0) {
    const std::string why =
        process_ ? WhyItEnded() : absl::StrCat(program_, " has ended while no service ran");
    process_.reset();
    ++state_.restarts;
    Fail(why);
  }
  if (!is_other && clock_->SinceBoot() < not_before_) return;
  if (const absl::Status started = Start(server, config); !started.ok()) {
    return Fail(std::string(started.message()));
  }
  if (const absl::Status noted = Note(kStarting, state_.error); !noted.ok()) EndUnnoted(noted);
}

// The next service would not know of it, and nobody could end it.
void ServedFolder::EndUnnoted(const absl::Status& noted) {
  if (const auto ended = process_->End(base::Deadline::After(kPatienceOfEnd)); !ended.ok()) {
    return Fail(std::string(ended.message()));
  }
  process_.reset();
  Fail(absl::StrCat(
      program_, " was ended, as what tells of its process cannot be written: ", noted.message()));
}

absl::Status ServedFolder::Remove() {
  if (process_) TUTTI_RETURN_IF_ERROR(process_->End(base::Deadline::After(kPatienceOfEnd)));
  process_.reset();
  return base::RemoveTree(folder_);
}

absl::Status EndServer(const fs::path& folder) {
  const auto state = ReadServerState(folder);
  if (absl::IsNotFound(state.status())) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(state.status());
  if (auto process = ServerProcess::Find(state->pid, state->start_time); process.has_value()) {
    if (const auto ended = process->End(base::Deadline::After(kPatienceOfEnd)); !ended.ok()) {
      return absl::Status(ended.code(), absl::StrCat("process ", state->pid, " still serves (",
                                                     ended.message(), "): end it by kill"));
    }
  }
  return base::RemoveTree(folder / "state.json");
}

}  // namespace tutti::file_server
