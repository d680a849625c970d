// LaunchersAtWork tells whether launchers still work for allocations whose Slurm jobs are over, by
// what lies in their folder. It looks once for each node, and again as long as the launcher there
// holds its lock, on a thread of its own: a folder that hangs holds up nobody who asks.
// Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tutti::engine {

// A launcher that has its node's folder in hand holds the lock of this name there.
inline constexpr char kLauncherLock[] = "lock";

class LaunchersAtWork {
 public:
  struct Found {
    std::vector<bool> at_work;  // by node
    bool any_began = false;     // on any node, when it was looked at first
  };

  explicit LaunchersAtWork(absl::Duration between_looks) : between_looks_(between_looks) {}
  // Waits for a look that is under way.
  ~LaunchersAtWork();
  LaunchersAtWork(const LaunchersAtWork&) = delete;
  LaunchersAtWork& operator=(const LaunchersAtWork&) = delete;

  // Has an allocation looked at from now on; nothing follows if it is already.
  void Watch(const std::string& id, const std::filesystem::path& folder, int nodes);
  // Returns what the last look has found; nothing before there was one.
  std::optional<Found> Of(const std::string& id) const;
  void Forget(const std::string& id);

 private:
  struct Entry {
    std::filesystem::path folder;
    int nodes = 0;
    std::optional<Found> found;
    absl::Duration due;  // SteadyNow, of the next look
  };
  void Work();
  // Returns the entry that is due, once one is; its id is "" if this object ends.
  std::pair<std::string, Entry> Await();
  void Note(const std::string& id, Found found);

  const absl::Duration between_looks_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // from the first entry on
};

}  // namespace tutti::engine
