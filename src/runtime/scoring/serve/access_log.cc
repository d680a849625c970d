#include "runtime/scoring/serve/access_log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::scoring {

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& file) {
  auto log = std::make_unique<AccessLog>();
  if (file == "-") log->fd_ = STDOUT_FILENO;
  if (file.empty() || file == "-") return log;
  TUTTI_ASSIGN_OR_RETURN(log->file_, base::Open(file, O_WRONLY | O_APPEND | O_CREAT));
  log->fd_ = log->file_.get();
  return log;
}

void AccessLog::Write(const AccessLine& line) {
  if (fd_ < 0) return;
  nlohmann::ordered_json json = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", line.time, absl::UTCTimeZone())},
      {"id", line.id},
      {"peer", line.peer},
      {"method", line.method},
      {"path", line.path},
      {"status", line.status}};
  if (!line.model.empty()) {
    json["model"] = line.model;
    json["version"] = line.version;
    json["images"] = line.images;
    json["queued_ms"] = absl::ToInt64Microseconds(line.queued) / 1000.0;
  }
  json["total_ms"] = absl::ToInt64Microseconds(line.total) / 1000.0;
  const std::string text =
      (is_torn_ ? "\n" : "") +
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  // One call for a line, so that lines of several threads do not mix.
  // A reader that stalls holds up nobody either.
  pollfd room = {fd_, POLLOUT, 0};
  if (::poll(&room, 1, /*timeout=*/0) != 1 || (room.revents & POLLOUT) == 0) {
    ++lost_;
    return;
  }
  const ssize_t written = ::write(fd_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) {
    is_torn_ = false;
  } else {
    is_torn_ = is_torn_ || written > 0;
    ++lost_;
  }
}

}  // namespace tutti::scoring
