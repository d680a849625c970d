// ObjectManifest notes what a folder has of a store: FOLDER/.tutti-objects has a line of JSON for
// each file that is whole. A line is written after its file. Until a fetch is over its files may
// not have reached the disk: a line says in which start of the machine it was written, and after a
// later start its file counts only if it has the hash that the line says.
// Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

inline constexpr char kManifestName[] = ".tutti-objects";

struct ManifestEntry {
  int64_t bytes = 0;
  std::string etag, sha256;  // sha256 of the content, hexadecimal
  // When the object was last changed, if that was settled when it was fetched (object_version.h):
  // an object with the same time is the same then. Else 0.
  double modified = 0;
  // The start of the machine in which it was fetched, if it may not be on the disk for good; else
  // empty.
  std::string boot = {};
};

// Returns whether the entry is of this version of an object, by its time if it is settled, or by
// its ETag if that is known.
bool IsOf(const ManifestEntry& entry, const StoredObject& object, bool is_settled);

// Returns this start of the machine; of one that does not say so each process counts as a start of
// its own.
const std::string& ThisBoot();

// Returns whether an earlier start of the machine may have lost the file.
bool MayBeLost(const ManifestEntry& entry);

// Returns the entries of such a file, by path; of several of one path the last.
std::map<std::string, ManifestEntry> ManifestEntriesIn(absl::string_view text);

class ObjectManifest {
 public:
  // Reads what an earlier fetch has noted; lines that are none, as the last one of a process that
  // was killed, are left out.
  static absl::StatusOr<std::unique_ptr<ObjectManifest>> Open(const std::filesystem::path& folder);

  // Returns the entry of this version of an object, if the folder has it, whole. Reads the file
  // where an earlier start of the machine may have lost it, and calls `on_block` for each block.
  std::optional<ManifestEntry> Find(const StoredObject& object, bool is_settled,
                                    const std::function<void()>& on_block = {}) const;
  // Returns whether there is an entry of its path and size, of whichever version.
  bool HasLike(const StoredObject& object) const;
  std::map<std::string, ManifestEntry> entries() const;
  // Notes a file that is there, in this start of the machine.
  absl::Status Add(const std::string& path, const ManifestEntry& entry);
  // Writes the file anew with these paths alone, in their order, one line each, whose files have
  // reached the disk. Until it is whole
  // it lies in `scratch`, a folder of the same disk, where a process that is killed leaves it.
  absl::Status Keep(const std::map<std::string, ManifestEntry>& entries,
                    const std::filesystem::path& scratch);

 private:
  ObjectManifest(std::filesystem::path folder, base::UniqueFd file)
      : folder_(std::move(folder)), file_(std::move(file)) {}

  const std::filesystem::path folder_;
  const base::UniqueFd file_;
  mutable absl::Mutex mutex_;
  std::map<std::string, ManifestEntry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::storage
