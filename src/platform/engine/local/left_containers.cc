#include "platform/engine/local/left_containers.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/threads/start_thread.h"
#include "platform/container/job_containers.h"

namespace tutti::engine {

namespace fs = std::filesystem;

LeftContainers::~LeftContainers() {
  std::thread removing, killing;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    removing = std::move(removing_);
    killing = std::move(killing_);
  }
  if (removing.joinable()) removing.join();
  if (killing.joinable()) killing.join();
}

bool LeftContainers::Hold(const fs::path& folder) {
  if (!container::HasNoteOfContainers(folder)) return false;
  const bool is_new = Add(folder, [folder](const std::atomic<bool>& cancelled) {
    const absl::Status removed = container::RemoveLeftContainers(folder, cancelled);
    if (removed.ok()) spdlog::info("{}: its launcher's containers are removed", folder.native());
    return removed;
  });
  if (is_new) Kill(folder);  // podman removes those of one after another
  return true;
}

void LeftContainers::Kill(const fs::path& folder) {
  absl::MutexLock lock(&mutex_);
  to_kill_.push_back(folder);
  if (!killing_.joinable()) killing_ = base::StartThread([this] { KillAll(); });
  changed_.SignalAll();
}

void LeftContainers::KillAll() {
  while (true) {
    std::vector<fs::path> folders;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopping_ && to_kill_.empty()) changed_.Wait(&mutex_);
      if (stopping_) return;
      folders = std::exchange(to_kill_, {});
    }
    container::KillLeftContainers(folders);
  }
}

std::string LeftContainers::Problem(const fs::path& folder) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(folder);
  return entry == entries_.end() ? "" : entry->second.problem;
}

void LeftContainers::RemoveStray(const fs::path& root) {
  Add(root, [root](const std::atomic<bool>& cancelled) {
    const absl::StatusOr<size_t> removed = container::RemoveStrayContainers(root, cancelled);
    if (removed.ok() && *removed > 0) {
      spdlog::warn("{}: {} containers are removed whose folders are gone", root.native(), *removed);
    }
    return removed.status();
  });
}

bool LeftContainers::Add(const fs::path& folder, Removal remove) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  const bool is_new =
      entries_
          .try_emplace(folder,
                       Entry{std::move(remove), base::RetryPause(first_pause_, longest_pause_)})
          .second;
  if (!is_new) return false;
  if (!removing_.joinable()) removing_ = base::StartThread([this] { Work(); });  // or the next's
  changed_.SignalAll();
  return true;
}

fs::path LeftContainers::Await() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    auto first = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      const bool is_sooner =
          first == entries_.end() || entry->second.not_before < first->second.not_before;
      if (is_sooner) first = entry;
    }
    const absl::Duration now = base::SteadyNow();
    if (first == entries_.end()) {
      changed_.Wait(&mutex_);
    } else if (first->second.not_before > now) {
      changed_.WaitWithTimeout(&mutex_, first->second.not_before - now);
    } else {
      return first->first;
    }
  }
  return {};
}

void LeftContainers::Work() {
  for (fs::path folder = Await(); !folder.empty(); folder = Await()) {
    Removal remove;
    {
      absl::MutexLock lock(&mutex_);
      remove = entries_.at(folder).remove;
    }
    Note(folder, remove(stopping_));
  }
}

void LeftContainers::Note(const fs::path& folder, const absl::Status& removed) {
  absl::MutexLock lock(&mutex_);
  if (removed.ok()) {
    entries_.erase(folder);
    return;
  }
  Entry& entry = entries_.at(folder);
  entry.not_before = base::SteadyNow() + entry.pause.Next();
  if (stopping_ || entry.problem == removed.message()) return;
  entry.problem = std::string(removed.message());
  spdlog::warn("{}: containers that a launcher left cannot be removed: {}", folder.native(),
               entry.problem);  // once, not at every attempt
}

}  // namespace tutti::engine
