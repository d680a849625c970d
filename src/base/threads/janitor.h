// Janitor removes folders on a thread of its own, so that nobody waits for a tree of a million
// files or for a server that is away. Who gives a folder up renames it first, to a name that says
// that it is to go, beside where it lay: that takes one step, and after a crash the next process
// finds it by its name and gives it to its own janitor. Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tutti::base {

class Janitor {
 public:
  // Tries again `retry` after a failure.
  explicit Janitor(absl::Duration retry = absl::Minutes(1)) : retry_(retry) {}
  // Waits for the removal of one file at most; what is left stays under its name.
  ~Janitor();
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  void Remove(std::filesystem::path folder);
  // Returns how many folders are still there.
  size_t waiting() const;
  // Returns what keeps it from removing, a line each.
  std::vector<std::string> Problems() const;
  // Renames the folder beside itself, to `prefix` and its name (and a number, if there is such a
  // one already), and removes that. OK if there is no such folder. Does not wait for the removal.
  absl::Status RenameAndRemove(const std::filesystem::path& folder, absl::string_view prefix);

 private:
  struct Entry {
    std::filesystem::path folder;
    absl::Duration not_before;  // SteadyNow
    std::string problem;
  };
  void Work();
  // Takes out the first that is due, once it is; false: it stops.
  bool Await(Entry& next) ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration retry_;
  std::atomic<bool> stopping_ = false;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // from the first folder on
};

}  // namespace tutti::base
