#include "platform/cache/node_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/remove_tree.h"
#include "base/status.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;

constexpr char kRoomLock[] = "room.lock";
constexpr absl::string_view kEvicted = ".evicted-";

}  // namespace

fs::path NodeCache::LockOf(absl::string_view key) const {
  return folder_ / absl::StrCat(key, ".lock");
}

absl::StatusOr<base::UniqueFd> NodeCache::Pin(absl::string_view key) const {
  base::Touch(PathOf(key));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_ / kPins));
  const fs::path file = folder_ / kPins / std::string(key);
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd pin, base::Open(file, O_RDWR | O_CREAT));
  // Who looks whether it is pinned has it for a moment.
  while (::flock(pin.get(), LOCK_SH) != 0) {
    if (errno != EINTR) return base::ErrnoStatus(absl::StrCat("lock ", file.native()));
  }
  base::Touch(file);
  return pin;
}

void NodeCache::NotePlace(absl::string_view key, absl::string_view place) const {
  std::error_code error;
  const fs::path file = PathOf(key) / kPlace;
  if (!fs::exists(file, error)) base::ReplaceFile(file, absl::StrCat(place, "\n")).IgnoreError();
}

absl::Status NodeCache::RemoveLeftovers(const std::atomic<bool>& cancelled) const {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().native();
    if (absl::StartsWith(name, kEvicted)) leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) {
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(leftover, cancelled));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> NodeCache::Evict(const CachedData& data,
                                      const std::atomic<bool>& cancelled) const {
  const fs::path path = PathOf(data.key), pin_file = folder_ / kPins / data.key;
  const fs::path gone = folder_ / absl::StrCat(kEvicted, data.key, ".", base::RandomHex(4));
  {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                           base::Open(LockOf(data.key), O_RDWR | O_CREAT));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
    const auto pin = base::Open(pin_file, O_RDWR);
    if (!pin.ok() || ::flock(pin->get(), LOCK_EX | LOCK_NB) != 0) return false;
    if (ChangedAt(path) != data.last_use) return false;  // somebody has used it meanwhile
    if (::rename(path.c_str(), gone.c_str()) != 0) {
      return base::ErrnoStatus(absl::StrCat("rename ", path.native()));
    }
    ::unlink(pin_file.c_str());
  }
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(gone, cancelled));
  return true;
}

absl::StatusOr<base::UniqueFd> NodeCache::LockRoom(const std::atomic<bool>& cancelled) const {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::LockFile(folder_ / kRoomLock, cancelled));
  TUTTI_RETURN_IF_ERROR(RemoveLeftovers(cancelled));
  return lock;
}

absl::StatusOr<std::vector<CachedData>> NodeCache::Remove(
    const std::set<std::string>& keys, const std::atomic<bool>& cancelled) const {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockRoom(cancelled));
  std::vector<CachedData> removed;
  for (const CachedData& data : List()) {
    if (!keys.contains(data.key)) continue;
    TUTTI_ASSIGN_OR_RETURN(const bool is_gone, Evict(data, cancelled));
    if (is_gone) removed.push_back(data);
  }
  return removed;
}

absl::StatusOr<std::vector<CachedData>> NodeCache::MakeRoom(
    const Room& room, const std::atomic<bool>& cancelled) const {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockRoom(cancelled));
  Room asked = room;
  std::vector<CachedData> removed;
  while (true) {
    bool all_went = true;
    for (const CachedData& data : ToGo(asked)) {
      TUTTI_ASSIGN_OR_RETURN(const bool is_gone, Evict(data, cancelled));
      if (is_gone) {
        asked.freed_bytes -= std::min(asked.freed_bytes, data.own_bytes);
        removed.push_back(data);
      }
      // Somebody has taken it since it was listed: another one must go in its place.
      if (!is_gone) asked.spared.insert(data.key);
      all_went = all_went && is_gone;
    }
    if (all_went) return removed;
  }
}

}  // namespace tutti::cache
