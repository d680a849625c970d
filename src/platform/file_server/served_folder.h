// ServedFolder keeps one file server as its definition says: starts its process, notes what becomes
// of it, starts it again after a pause that grows when it has ended by itself, and anew when the
// definition changes. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "base/threads/retry_pause.h"
#include "base/unique_fd.h"
#include "platform/file_server/server_state.h"
#include "spec/data/file_server.h"

namespace tutti::file_server {

// ServerProcess is a process that outlives the service which started it, and which the next service
// finds again by its id and the time of its start. Movable; destroying it leaves the process alone.
// Not thread-safe.
class ServerProcess {
 public:
  static absl::StatusOr<ServerProcess> Start(const base::ChildOptions& options);
  // Finds one that a service before this one has started; nullopt if it has ended.
  static std::optional<ServerProcess> Find(pid_t pid, uint64_t start_time);

  pid_t pid() const { return pid_; }
  uint64_t start_time() const { return start_time_; }
  // Returns whether it has not ended. Does not wait.
  bool IsAlive();
  // Returns how it has ended; "" if that is not known, as of a process that was found.
  std::string HowItEnded();
  // Tells it to end, and kills it where it has not by the deadline.
  absl::Status End(base::Deadline deadline);

 private:
  ServerProcess(pid_t pid, uint64_t start_time, base::UniqueFd pidfd)
      : pid_(pid), start_time_(start_time), pidfd_(std::move(pidfd)) {}

  pid_t pid_;
  uint64_t start_time_;
  base::UniqueFd pidfd_;                     // of one that was found
  std::optional<base::ChildProcess> child_;  // of one that was started
};

// So much a process logs into ganesha.log before that becomes ganesha.log.1.
inline constexpr uint64_t kLongestLog = 16 << 20;

class ServedFolder {
 public:
  // Takes over the process that `folder` (server_state.h) tells of, if that lives. `program`: as
  // ganesha.nfsd, looked up in PATH.
  ServedFolder(std::filesystem::path folder, std::string program, const base::Clock* clock);

  // Does what is due now. Blocks while a process is ended, 10 s at most.
  void Look(const spec::FileServer& server);
  // Ends the process and removes its folder; what was served stays.
  absl::Status Remove();

  const ServerState& state() const { return state_; }

 private:
  absl::Status Start(const spec::FileServer& server, const std::string& config);
  void Fail(const std::string& why);
  // Logs, and returns, that it could not be written.
  absl::Status Note(const std::string& state, const std::string& error);
  void EndUnnoted(const absl::Status& noted);
  std::string Log() const;
  // Has what the process has logged stand in ganesha.log.1, and it go on with an empty file, once
  // that has kLongestLog bytes. What it logs in between is lost.
  void ShortenLog() const;
  std::string WhyItEnded();

  const std::filesystem::path folder_;
  const std::string program_;
  const base::Clock* const clock_;
  std::optional<ServerProcess> process_;
  std::string config_;  // that the process has
  ServerState state_;
  bool is_noted_ = true;  // in the folder; else it is written at the next look
  base::RetryPause pause_;
  absl::Duration not_before_ = absl::ZeroDuration();  // since boot
  absl::Duration started_ = absl::ZeroDuration();
};

// Ends the process that `folder` (server_state.h) tells of and forgets it, where no service runs
// that would. Hold the service's folder meanwhile (base::HoldFolder). Blocks for 20 s at most; an
// error says which process goes on.
absl::Status EndServer(const std::filesystem::path& folder);

}  // namespace tutti::file_server
