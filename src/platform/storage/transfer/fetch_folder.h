// Does what a fetch needs of its folder before and after objects come. Thread-safe, but for two
// fetches into one folder.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/transfer/former_fetch.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::storage {

// ResourceExhausted if the folder's disk has less free space than the objects take that are neither
// in the folder nor in a former one: before hours have gone by. What is there is taken for what it
// was.
absl::Status CheckFreeSpace(const Survey& survey, const std::filesystem::path& folder,
                            const ObjectManifest& manifest, const FormerFetches& formers);

// Removes what earlier fetches brought and the store has no longer: an object may now be where a
// folder was.
void RemoveStale(const std::filesystem::path& folder, const Survey& survey,
                 const ObjectManifest& manifest);

// Leaves a manifest of these objects alone, and no parts.
absl::Status Tidy(const std::filesystem::path& folder, const std::vector<StoredObject>& objects,
                  ObjectManifest& manifest);

}  // namespace tutti::storage
