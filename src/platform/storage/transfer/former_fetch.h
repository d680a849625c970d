// FormerFetches are what earlier fetches from a container have left in other folders: what has not
// changed since becomes a file of the new folder as well, by a hard link, which takes no time and
// no room. They may have been of other folders of the container, of parts of this one or of one
// above it. Immutable; thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

class FormerFetches {
 public:
  FormerFetches() = default;  // of what was never fetched
  // Reads what is written of each folder (object_manifest.h), which may vanish at any time. One
  // that cannot be read has nothing. `base`: the folder of the container that is fetched now.
  FormerFetches(const std::vector<FormerFolder>& folders, absl::string_view base);

  // Returns whether one has a file of an object's path and size.
  bool HasLike(const StoredObject& object) const;
  // Returns whether one has this version of an object. Its file need not be there any more.
  bool Has(const StoredObject& object, bool is_settled) const;
  // Makes the file of this version of an object `target`, below `folder`, as well; returns what is
  // known of it. Nothing if there is no such file, it was written to since it was fetched, is not
  // what was fetched although that must be known, or cannot be linked there.
  absl::StatusOr<std::optional<ManifestEntry>> LinkTo(const StoredObject& object, bool is_settled,
                                                      const std::filesystem::path& folder,
                                                      const std::filesystem::path& target) const;

 private:
  struct Former {
    std::filesystem::path folder;
    std::string base;     // below which its objects are
    bool verify = false;  // by their hashes
    std::map<std::string, ManifestEntry> entries;
    absl::Time written;  // when the last entry was
  };

  // Returns the path that the object has in the former folder; none if it is not of that.
  std::optional<std::string> PathIn(const Former& former, const StoredObject& object) const;
  // Returns its entry of that path; null if there is none of this version.
  const ManifestEntry* Find(const Former& former, const std::string& path,
                            const StoredObject& object, bool is_settled) const;

  std::string base_;
  std::vector<Former> formers_;
};

}  // namespace tutti::storage
