// EventLog keeps the events of this node: numbered from 1, appended to spool/events.jsonl, kept
// until the service has acknowledged them. Also in memory, so that a full disk does not silence the
// launcher. Thread-safe.
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

  // Waits until others that share the disk can see what is there.
  absl::Status Sync() const;

  int64_t size() const;
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
  EventLog(base::UniqueFd fd, std::vector<std::string> lines)
      : fd_(std::move(fd)), lines_(std::move(lines)) {}
  const base::UniqueFd fd_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const base::TextMask> mask_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::launch
