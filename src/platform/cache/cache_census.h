// Census is what lies in a node's cache (node_cache.h) at one moment: which versions of which data,
// how large they are, since some share files (hard links), and which of them are to go if there is
// to be room. Immutable; thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::cache {

inline constexpr size_t kKeyDigits = 24;  // of a version's name, hexadecimal
inline constexpr char kPins[] = "pins", kPlace[] = "place", kStreamed[] = "streamed";

// Streamed: those objects of it that were read last (decision 072).
enum class DataState { kWhole, kFetching, kDamaged, kStreamed };
// Returns "whole", "fetching", "damaged", "streamed".
absl::string_view Name(DataState state);

// CachedData is one version of some data, as it lies there.
struct CachedData {
  std::string key;
  std::string place;  // "" of what earlier versions of tutti have fetched
  uint64_t files = 0;
  uint64_t bytes = 0;      // of its files
  uint64_t own_bytes = 0;  // of those that no other version has as well
  absl::Time last_use;
  DataState state = DataState::kWhole;
  bool is_pinned = false;  // a process has it
  bool has_pins = false;   // whoever has it holds a pin, as far as is known
};

// RoomGoal is what MakeRoom must achieve.
struct RoomGoal {
  std::optional<uint64_t> most_bytes = {};  // that the cache has then
  uint64_t freed_bytes = 0;                 // that are freed on the disk, at least
  std::set<std::string> spared = {};        // keys of what stays
};

class Census {
 public:
  // Looks at each file in the folder, and reads none. What vanishes meanwhile may be left out.
  static Census Of(const std::filesystem::path& folder);

  // Returns all that is there, the longest unused first.
  const std::vector<CachedData>& list() const { return list_; }
  // Returns the bytes of all files, each once.
  uint64_t bytes() const;
  // Returns what is to go, the longest unused first; neither what is pinned or spared, nor what may
  // be in use without a pin. Nothing goes if all of it would not free `room.freed_bytes`.
  std::vector<CachedData> ToRemove(const RoomGoal& room) const;

 private:
  using FileId = std::pair<dev_t, ino_t>;
  struct File {
    uint64_t bytes = 0;
    uint64_t names = 0;
  };
  using Files = std::map<FileId, File>;

  static Files FilesBelow(const std::filesystem::path& folder, std::map<FileId, uint64_t>& links);

  std::vector<CachedData> list_;
  std::vector<Files> files_;  // of each of the list; `names` are those that it has itself
  Files all_;                 // `names` are those of all versions
};

// Returns whether that is the name of a version's folder.
bool IsKey(absl::string_view name);
// Returns the state of the version in that folder.
DataState StateOf(const std::filesystem::path& folder);
// Returns when a file or folder, or a link itself, was last changed, as this machine knows it
// (base::ChangedAt asks a server anew); nothing if it is not there.
std::optional<absl::Time> ChangedAt(const std::filesystem::path& path);
// Returns whether a process has KEY of that cache pinned.
bool IsPinned(const std::filesystem::path& folder, absl::string_view key);
// Returns whether whoever may read KEY holds a pin: a version of tutti without pins has not taken
// it, or so long ago that its job has ended (kLongestWithoutPin).
bool AllHoldPins(const std::filesystem::path& folder, absl::string_view key);
// Notes that a job may read KEY without a pin, which nobody sees the end of.
absl::Status NoteUnpinnedUse(const std::filesystem::path& folder, absl::string_view key);
// Removes what is noted of the pins of KEY, whose data are gone.
void ForgetPins(const std::filesystem::path& folder, absl::string_view key);
inline constexpr absl::Duration kLongestWithoutPin = absl::Hours(24 * 30);
// Waits for others who look whether data are pinned, each of whom has a pin for a moment and would
// be taken for a job; not for long, should one of them hang. Held until it is closed, after the pin
// that is looked at.
base::UniqueFd AwaitLooks(const std::filesystem::path& folder);

}  // namespace tutti::cache
