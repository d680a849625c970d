#include "platform/cache/node_cache.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/remove_tree.h"
#include "base/status.h"
#include "platform/cache/lock_reach.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;

constexpr char kRoomLock[] = "room.lock";
constexpr size_t kLongestOrigin = 8192;
constexpr absl::string_view kEvicted = ".evicted-";

bool IsAtOrBelow(absl::string_view path, absl::string_view folder) {
  return folder.empty() || path == folder || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

}  // namespace

fs::path NodeCache::LockOf(absl::string_view key) const {
  return folder_ / absl::StrCat(key, ".lock");
}

absl::StatusOr<HeldData> NodeCache::LockAndPin(absl::string_view key,
                                               const std::atomic<bool>& cancelled) const {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_));
  HeldData held;
  TUTTI_ASSIGN_OR_RETURN(held.lock, base::LockFile(LockOf(key), cancelled));
  // Now, since who removes it has the lock.
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(PathOf(key)));
  TUTTI_ASSIGN_OR_RETURN(held.pin, Pin(key));
  return held;
}

absl::StatusOr<HeldData> NodeCache::Take(absl::string_view key,
                                         const std::atomic<bool>& cancelled) const {
  while (true) {
    absl::StatusOr<HeldData> held = LockAndPin(key, cancelled);
    if (!absl::IsResourceExhausted(held.status())) return held;
    TUTTI_ASSIGN_OR_RETURN(const auto gone, MakeRoom({.freed_bytes = kRoomForNotes}, cancelled));
    if (gone.empty()) return held;
  }
}

absl::StatusOr<base::UniqueFd> NodeCache::Pin(absl::string_view key) const {
  base::Touch(PathOf(key));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_ / kPins));
  std::error_code error;
  const bool was_pinned = fs::exists(folder_ / kPins / std::string(key), error);
  // The process that fetched it held no pin, and its job may still read it.
  const DataState state = StateOf(PathOf(key));
  const bool may_be_read = state != DataState::kFetching && state != DataState::kStreamed;
  if (!was_pinned && may_be_read) {
    TUTTI_RETURN_IF_ERROR(NoteUnpinnedUse(folder_, key));
  }
  TUTTI_RETURN_IF_ERROR(base::Open(folder_ / kPins / std::string(key), O_RDWR | O_CREAT).status());
  return Hold(key);
}

absl::StatusOr<base::UniqueFd> NodeCache::Hold(absl::string_view key) const {
  const fs::path file = folder_ / kPins / std::string(key);
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd pin, base::Open(file, O_RDWR));
  // A process that checks whether the data are pinned holds the lock for a moment.
  while (::flock(pin.get(), LOCK_SH) != 0) {
    if (errno != EINTR) return base::ErrnoStatus(absl::StrCat("lock ", file.native()));
  }
  return pin;
}

void NodeCache::NoteOrigin(absl::string_view key, const DataOrigin& origin) const {
  std::error_code error;
  const fs::path file = PathOf(key) / kPlace;
  const std::string text = absl::StrCat(origin.words, "\n", origin.store, "\n", origin.base, "\n");
  if (!fs::exists(file, error)) base::ReplaceFile(file, text).IgnoreError();
}

std::vector<std::pair<std::string, std::string>> NodeCache::KeysOf(absl::string_view store,
                                                                   absl::string_view base) const {
  std::vector<std::tuple<absl::Time, std::string, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string key = entry->path().filename().native();
    if (!IsKey(key)) continue;
    const auto text = base::ReadFile(entry->path() / kPlace, kLongestOrigin);
    const auto changed = ChangedAt(entry->path());
    if (!text.ok() || !changed) continue;
    const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
    if (lines.size() != 4 || lines[1] != store) continue;
    if (IsAtOrBelow(lines[2], base) || IsAtOrBelow(base, lines[2])) {
      found.emplace_back(*changed, key, lines[2]);
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::pair<std::string, std::string>> keys;
  for (auto& [changed, key, of] : found) keys.emplace_back(std::move(key), std::move(of));
  return keys;
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
    const base::UniqueFd look = AwaitLooks(folder_);
    const auto pin = base::Open(pin_file, O_RDWR);
    if (!pin.ok() || !AllHoldPins(folder_, data.key) || ::flock(pin->get(), LOCK_EX | LOCK_NB) != 0)
      return false;
    if (ChangedAt(path) != data.last_use) return false;  // somebody has used it meanwhile
    if (::rename(path.c_str(), gone.c_str()) != 0) {
      return base::ErrnoStatus(absl::StrCat("rename ", path.native()));
    }
    ForgetPins(folder_, data.key);
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
    const RoomGoal& room, const std::atomic<bool>& cancelled) const {
  if (const absl::Status reach = CheckLockReach(folder_); !reach.ok()) {
    spdlog::warn("{}", std::string(reach.message()));
    return std::vector<CachedData>();
  }
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, LockRoom(cancelled));
  RoomGoal asked = room;
  std::vector<CachedData> removed;
  while (true) {
    bool all_went = true;
    for (const CachedData& data : ToRemove(asked)) {
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
