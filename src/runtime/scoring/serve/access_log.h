// AccessLog writes a line of JSON for each request. A disk that takes no more stops the log and not
// the answers: lines that it does not take are counted. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::scoring {

struct AccessLine {
  absl::Time time;
  std::string id, peer, method, path;
  int status = 0;
  std::string model, version;  // "" where no model was asked
  size_t images = 0;
  absl::Duration total, queued;
};

class AccessLog {
 public:
  // Appends to a file; "-" is standard output, "" no log.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(const std::string& file);
  void Write(const AccessLine& line);
  int64_t lost() const { return lost_; }

 private:
  base::UniqueFd file_;
  int fd_ = -1;
  std::atomic<int64_t> lost_ = 0;
  std::atomic<bool> is_torn_ = false;  // the file ends with a part of a line
};

}  // namespace tutti::scoring
