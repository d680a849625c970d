// LeftContainers removes the containers that launchers left when they were killed, on a thread of
// its own, so that nobody waits for podman; a second one kills what runs in them before, so that
// nobody waits for /proc either, where a process that hangs may hold up who reads it. What podman
// does not remove is tried again, after a pause that grows (base::RetryPause), until it has: as
// long as a container may run nothing may take its allocation for over. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/threads/retry_pause.h"

namespace tutti::engine {

class LeftContainers {
 public:
  // The pauses are as in base::RetryPause.
  explicit LeftContainers(absl::Duration first_pause = absl::Seconds(1),
                          absl::Duration longest_pause = absl::Minutes(1))
      : first_pause_(first_pause), longest_pause_(longest_pause) {}
  // Ends a podman that is under way. What is left stays for who comes next.
  ~LeftContainers();
  LeftContainers(const LeftContainers&) = delete;
  LeftContainers& operator=(const LeftContainers&) = delete;

  // Returns whether containers of an allocation's folder may still be there, by its note
  // (platform/container/job_containers.h); if so, what runs in them is being killed from now on,
  // and they are being removed. Only for a folder no launcher of which lives. Quick: it looks for
  // the note alone.
  bool Hold(const std::filesystem::path& folder);
  // Returns why they could not be removed so far; "" if nothing is known against it.
  std::string Problem(const std::filesystem::path& folder) const;

  // Has containers removed, once, whose folders below `root` are gone.
  void RemoveStray(const std::filesystem::path& root);

 private:
  using Removal = std::function<absl::Status(const std::atomic<bool>& cancelled)>;
  struct Entry {
    Removal remove;
    base::RetryPause pause;
    absl::Duration not_before = {};  // SteadyNow
    std::string problem;
  };
  // Adds what is to be done for that folder; returns false if it is there already.
  bool Add(const std::filesystem::path& folder, Removal remove);
  void Kill(const std::filesystem::path& folder);
  void KillAll();  // the thread that kills
  void Work();     // the thread that removes
  // Returns the folder of the first that is due, once it is; "": it stops.
  std::filesystem::path Await();
  void Note(const std::filesystem::path& folder, const absl::Status& removed);

  const absl::Duration first_pause_, longest_pause_;
  std::atomic<bool> stopping_ = false;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::filesystem::path, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::filesystem::path> to_kill_ ABSL_GUARDED_BY(mutex_);  // what runs in theirs
  std::thread removing_ ABSL_GUARDED_BY(mutex_);  // from the first entry on, as the other
  std::thread killing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::engine
