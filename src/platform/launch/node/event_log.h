// EventLog keeps the events of this node: numbered from 1, appended to spool/events.jsonl, kept
// until the service has acknowledged them. Also in memory, so that a full disk does not silence the
// launcher: what the disk does not take is written before what comes next, and no line is ever
// there in part. Thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/text/text_mask.h"
#include "base/unique_fd.h"

namespace tutti::launch {

class EventLog {
 public:
  // Goes on after the events that the file holds; a last line that a crash cut off is removed.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::filesystem::path& file);

  // Adds "kind" and "time" to `fields` (an object) and appends it.
  void Append(const std::string& kind, nlohmann::json fields);

  // Writes what the disk has not taken before, and waits until others that share it can see what is
  // there.
  absl::Status Sync();

  int64_t size() const;
  // Returns how many events the file has; on a full disk fewer than there are.
  int64_t kept() const;
  // Returns whether the last event is "finished".
  bool finished() const;
  // Returns the lines of the events from number `first` (from 1) on, each with its newline.
  std::string From(int64_t first) const;
  // Waits until there are more than `count` events, or Interrupt. False: interrupted.
  bool AwaitMoreThan(int64_t count) const;
  void Interrupt();

  // Hides secrets in the texts of what is appended from now on.
  void MaskWith(std::shared_ptr<const base::TextMask> mask);

 private:
  void MaskTexts(nlohmann::json& fields) const;
  EventLog(base::UniqueFd fd, std::vector<std::string> lines, int64_t bytes)
      : fd_(std::move(fd)),
        lines_(std::move(lines)),
        written_{lines_.size(), bytes},
        synced_(written_) {}
  // Writes the lines that the file does not have.
  absl::Status WriteRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // A part of the file, from its beginning.
  struct Extent {
    size_t lines = 0;
    int64_t bytes = 0;
  };
  const base::UniqueFd fd_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const base::TextMask> mask_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  Extent written_ ABSL_GUARDED_BY(mutex_), synced_ ABSL_GUARDED_BY(mutex_);
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::launch
