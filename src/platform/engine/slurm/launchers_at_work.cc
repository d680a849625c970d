#include "platform/engine/slurm/launchers_at_work.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/threads/start_thread.h"
#include "platform/engine/node_files.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

bool IsLocked(const fs::path& node) {
  const auto lock = base::Open(node / kLauncherLock, O_RDONLY);
  return lock.ok() && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// One that had not begun when its job was over, or is done, is asked for no lock: on a network disk
// each costs several ways to its server.
LaunchersAtWork::Found LookAt(const fs::path& folder, int nodes,
                              const std::optional<LaunchersAtWork::Found>& before) {
  LaunchersAtWork::Found found{.at_work = std::vector<bool>(nodes),
                               .any_began = before && before->any_began};
  for (int i = 0; i < nodes; ++i) {
    const fs::path node = folder / absl::StrCat(i);
    if (before && !before->at_work[i]) continue;
    const bool began = before || IsThereByNow(node / "started");
    found.any_began |= began;
    found.at_work[i] = began && !IsThereByNow(node / "done") && IsLocked(node);
  }
  return found;
}

}  // namespace

LaunchersAtWork::~LaunchersAtWork() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void LaunchersAtWork::Watch(const std::string& id, const fs::path& folder, int nodes) {
  absl::MutexLock lock(&mutex_);
  const bool is_new =
      entries_.try_emplace(id, Entry{folder, nodes, std::nullopt, base::SteadyNow()}).second;
  if (!thread_.joinable()) thread_ = base::StartThread([this] { Work(); });  // or the next one's
  if (is_new) changed_.SignalAll();
}

std::optional<LaunchersAtWork::Found> LaunchersAtWork::Of(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(id);
  return entry == entries_.end() ? std::nullopt : entry->second.found;
}

void LaunchersAtWork::Forget(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(id);
}

std::pair<std::string, LaunchersAtWork::Entry> LaunchersAtWork::Await() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    const auto first =
        std::min_element(entries_.begin(), entries_.end(),
                         [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    const absl::Duration wait =
        first == entries_.end() ? absl::InfiniteDuration() : first->second.due - base::SteadyNow();
    if (wait <= absl::ZeroDuration()) return *first;
    changed_.WaitWithTimeout(&mutex_, wait);
  }
  return {};
}

void LaunchersAtWork::Work() {
  while (true) {
    const auto [id, entry] = Await();
    if (id.empty()) return;
    Note(id, LookAt(entry.folder, entry.nodes, entry.found));
  }
}

void LaunchersAtWork::Note(const std::string& id, Found found) {
  absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;  // released meanwhile
  const bool any = std::count(found.at_work.begin(), found.at_work.end(), true) > 0;
  entry->second.due = any ? base::SteadyNow() + between_looks_ : absl::InfiniteDuration();
  entry->second.found = std::move(found);
}

}  // namespace tutti::engine
