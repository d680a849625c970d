#include "base/threads/janitor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/remove_tree.h"
#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::base {

Janitor::~Janitor() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Janitor::Remove(std::filesystem::path folder) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  entries_.push_back({.folder = std::move(folder)});
  if (!thread_.joinable()) thread_ = StartThread([this] { Work(); });  // or the next folder's
  changed_.SignalAll();
}

size_t Janitor::waiting() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size() + (busy_ ? 1 : 0);
}

std::vector<std::string> Janitor::Problems() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> problems;
  for (const Entry& entry : entries_) {
    if (!entry.problem.empty()) problems.push_back(entry.problem);
  }
  return problems;
}

absl::Status Janitor::RenameAndRemove(const std::filesystem::path& folder,
                                      absl::string_view prefix) {
  std::filesystem::path away =
      folder.parent_path() / absl::StrCat(prefix, folder.filename().native());
  for (int number = 2;; ++number) {
    // RENAME_NOREPLACE is not known to every file system; a folder that is not empty is not
    // replaced by rename(2) either, and an empty one is no loss.
    if (::rename(folder.c_str(), away.c_str()) == 0) break;
    if (errno == ENOENT) return absl::OkStatus();
    if (errno != ENOTEMPTY && errno != EEXIST) {
      return ErrnoStatus(absl::StrCat("rename ", folder.native()));
    }
    away = folder.parent_path() /
           absl::StrCat(prefix, folder.filename().native(), ".", std::to_string(number));
  }
  Remove(std::move(away));
  return absl::OkStatus();
}

bool Janitor::Await(Entry& next) {
  absl::MutexLock lock(&mutex_);
  busy_ = false;
  while (!stopping_) {
    const absl::Duration now = SteadyNow();
    const auto first = std::min_element(
        entries_.begin(), entries_.end(),
        [](const Entry& a, const Entry& b) { return a.not_before < b.not_before; });
    if (first == entries_.end()) {
      changed_.Wait(&mutex_);
    } else if (first->not_before > now) {
      changed_.WaitWithTimeout(&mutex_, first->not_before - now);
    } else {
      next = std::move(*first);
      entries_.erase(first);
      return busy_ = true;
    }
  }
  return false;
}

void Janitor::Work() {
  for (Entry entry; Await(entry);) {
    const absl::Status removed = RemoveTree(entry.folder, stopping_);
    if (removed.ok() || stopping_) continue;
    const std::string problem(removed.message());
    if (problem != entry.problem) spdlog::warn("{}", problem);  // once, not at every attempt
    entry.problem = problem;
    entry.not_before = SteadyNow() + retry_;
    absl::MutexLock lock(&mutex_);
    entries_.push_back(std::move(entry));
  }
}

}  // namespace tutti::base
