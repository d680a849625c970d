// NodeCache is what a node keeps of data that were fetched, in one folder that the processes of all
// its jobs share, and that nodes may share:
//
//   KEY/             one version of what one address names (fetched_home.h, or one file); last
//                    changed when a job last took it
//   KEY/place        what it was fetched from: in words; which store; which folder of it
//   KEY.lock         held by who fetches KEY, looks at it or removes it
//   pins/KEY         held by each process whose job reads KEY (a shared lock, so that it is free
//                    again when the last of them has ended, however it ended)
//   pins/KEY.unpinned  a version of tutti without pins had taken KEY when that was made
//   pins/look.lock   held for a moment by who looks whether data are pinned
//   room.lock        held by who makes room
//   .evicted-KEY.X   what is removed; who was killed has left it, and who next makes room goes on
//
// Pinned data are not removed: a process that pins KEY holds KEY.lock, and so does one that removes
// it, by one rename, after it has found no pin. Data without pins/KEY were taken by a version of
// tutti that held none, and stay; they also stay for a month after a process with a pin has taken
// them too, since nobody sees when the other's job ends. All locks are those of flock(2).
// Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "platform/cache/cache_census.h"

namespace tutti::cache {

// The bytes that a disk must have for folders and notes; where it is full, and nobody knows what is
// lacking, so many are made free.
inline constexpr uint64_t kRoomForNotes = 64 << 10;

// DataOrigin is where data were fetched from.
struct DataOrigin {
  std::string words;  // one line for people
  std::string store;  // spec::StoreOf; empty: it is none
  std::string base;   // the folder of the container that the objects' paths are relative to
};

// KEY.lock and a pin of KEY.
struct HeldData {
  base::UniqueFd lock, pin;
};

class NodeCache {
 public:
  explicit NodeCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path PathOf(absl::string_view key) const { return folder_ / std::string(key); }
  std::filesystem::path LockOf(absl::string_view key) const;

  // Makes the folder of KEY if it is not there, locks it and pins it. On a disk that has no room
  // for that what is longest unused goes. Waits for who has the lock; Cancelled once that is set.
  absl::StatusOr<HeldData> Take(absl::string_view key, const std::atomic<bool>& cancelled) const;
  // Marks KEY as used, and keeps it from removal as long as the descriptor is open. The caller
  // holds KEY.lock.
  absl::StatusOr<base::UniqueFd> Pin(absl::string_view key) const;
  // Does the same without marking it as used. NotFound if it was never pinned.
  absl::StatusOr<base::UniqueFd> Hold(absl::string_view key) const;
  // Returns whether a process has it pinned.
  bool IsPinned(absl::string_view key) const { return cache::IsPinned(folder_, key); }
  // Notes what KEY is of, unless that is noted or the disk is full. The caller holds KEY.lock.
  void NoteOrigin(absl::string_view key, const DataOrigin& origin) const;
  // Returns data of that store that may have objects below `base`, or are below it themselves, and
  // their own base; what was used last comes first.
  std::vector<std::pair<std::string, std::string>> KeysOf(absl::string_view store,
                                                          absl::string_view base) const;

  // Returns all that is there, the longest unused first. Looks at each file, and reads none.
  std::vector<CachedData> List() const { return Census::Of(folder_).list(); }
  // Returns what MakeRoom would remove.
  std::vector<CachedData> ToRemove(const RoomGoal& room) const {
    return Census::Of(folder_).ToRemove(room);
  }
  // Removes what is longest unused, neither pinned nor spared, until there is as much room; nothing
  // if all of it would not free `room.freed_bytes`, or other nodes do not see this one's locks
  // (lock_reach.h). Returns what was removed. Waits for
  // others that make room; Cancelled once that is set.
  absl::StatusOr<std::vector<CachedData>> MakeRoom(const RoomGoal& room,
                                                   const std::atomic<bool>& cancelled) const;
  // Removes these keys; returns what was removed. What is pinned, or fetched just now, or was taken
  // by a version of tutti without pins, stays.
  absl::StatusOr<std::vector<CachedData>> Remove(const std::set<std::string>& keys,
                                                 const std::atomic<bool>& cancelled) const;

 private:
  absl::StatusOr<HeldData> LockAndPin(absl::string_view key,
                                      const std::atomic<bool>& cancelled) const;
  absl::StatusOr<base::UniqueFd> LockRoom(const std::atomic<bool>& cancelled) const;
  // Removes the data. Returns false if somebody has them, or has used them since they were listed.
  absl::StatusOr<bool> Evict(const CachedData& data, const std::atomic<bool>& cancelled) const;
  absl::Status RemoveLeftovers(const std::atomic<bool>& cancelled) const;

  const std::filesystem::path folder_;
};

}  // namespace tutti::cache
