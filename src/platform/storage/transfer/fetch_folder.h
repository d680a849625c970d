// Does what a fetch needs of its folder before and after objects come. Thread-safe, but for two
// fetches into one folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/transfer/former_fetch.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::storage {

// FetchedBefore is what a fetch has of its objects before it begins, or when it has ended early.
struct FetchedBefore {
  const ObjectManifest& manifest;
  const FormerFetches& formers;
  int64_t settled_before = 0;  // as StorageRequest has it
};

// ResourceExhausted if the folder's disk has less free space than the objects take that are neither
// in the folder nor in a former one: before hours have gone by. It says what is lacking
// (LackingOf). What is there is taken for what it was.
absl::Status CheckFreeSpace(const Survey& survey, const std::filesystem::path& folder,
                            const FetchedBefore& before);

// Returns the error of a fetch; one of a full disk, or a full quota, with what is lacking: all that
// has not come, since the disk has said that it has no room, whatever it says is free. Internal
// where it is open files that are too many: no room on the disk would help.
absl::Status WithLackingOf(absl::Status failure, const Survey& survey,
                           const std::filesystem::path& folder, const FetchedBefore& before);

// Removes what earlier fetches brought and the store has no longer: an object may now be where a
// folder was.
void RemoveStale(const std::filesystem::path& folder, const Survey& survey,
                 const ObjectManifest& manifest);

struct UnsyncedFiles {
  absl::Status status;          // why; an error without paths is of a folder's names
  std::set<std::string> paths;  // of the objects, as the survey has them
};

// Puts the files of the survey that the manifest has on the disk for good, with their names, those
// that may not be there yet; returns those that could not be. `folder_fd`: the folder, opened
// before the first of them was written.
UnsyncedFiles SyncFiles(const std::filesystem::path& folder, int folder_fd, const Survey& survey,
                        const ObjectManifest& manifest);

// Removes files that could not be put on the disk, and their lines: what a system has failed to
// write it may take for written, and a later fetch would not be told of it.
void RemoveUnsynced(const std::filesystem::path& folder, const std::set<std::string>& paths,
                    ObjectManifest& manifest);

// Leaves a manifest of these objects alone, whose files have reached the disk, and no parts.
absl::Status Tidy(const std::filesystem::path& folder, const std::vector<StoredObject>& objects,
                  ObjectManifest& manifest);

}  // namespace tutti::storage
