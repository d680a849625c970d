// FormerFetch is what an earlier fetch of a place has left in another folder: what has not changed
// since becomes a file of the new folder as well, by a hard link, which takes no time and no room.
// Immutable; thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

class FormerFetch {
 public:
  FormerFetch() = default;  // of a place that was never fetched
  // Reads what lies in a folder and what is written of it in a file (object_manifest.h), both of
  // which may vanish at any time. One that cannot be read has nothing.
  FormerFetch(std::filesystem::path folder, const std::filesystem::path& objects);

  // Returns the entry of this version of an object. Its file need not be there any more.
  std::optional<ManifestEntry> Find(const StoredObject& object, bool is_settled) const;
  // Returns whether it has a file of an object's path and size.
  bool HasLike(const StoredObject& object) const;
  // Makes the file of an object that was found `target`, below `folder`, as well. False if it is
  // not there, was written to since it was fetched, or cannot be linked there.
  absl::StatusOr<bool> LinkTo(const StoredObject& object, const std::filesystem::path& folder,
                              const std::filesystem::path& target) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, ManifestEntry> entries_;
  absl::Time written_ = absl::InfinitePast();  // when the last entry was
};

}  // namespace tutti::storage
