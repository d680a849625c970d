#include "platform/storage/transfer/fetch_folder.h"

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {

namespace fs = std::filesystem;

absl::Status CheckFreeSpace(const Survey& survey, const fs::path& folder,
                            const ObjectManifest& manifest, const FormerFetches& formers) {
  const auto entries = manifest.entries();
  int64_t needed = -BytesOfParts(folder);
  for (const StoredObject& object : survey.objects) {
    const auto found = entries.find(object.path);
    const bool is_there = found != entries.end() && found->second.bytes == object.bytes;
    if (!is_there && !formers.HasLike(object)) needed += object.bytes;
  }
  const auto free = base::FreeBytes(folder);
  if (!free.ok() || needed <= 0 || *free >= static_cast<uint64_t>(needed)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("it needs ", base::BinarySize(needed), " in ",
                                                   folder.string(), ", where ",
                                                   base::BinarySize(*free), " are free"));
}

void RemoveStale(const fs::path& folder, const Survey& survey, const ObjectManifest& manifest) {
  std::set<std::string> wanted;
  for (const StoredObject& object : survey.objects) wanted.insert(object.path);
  std::error_code error;
  for (const auto& [path, entry] : manifest.entries()) {
    if (wanted.contains(path)) continue;
    fs::remove(folder / path, error);
    for (fs::path parent = (folder / path).parent_path(); parent != folder && !error;
         parent = parent.parent_path()) {
      if (!fs::remove(parent, error)) break;  // others are in it
    }
  }
}

absl::Status Tidy(const fs::path& folder, const std::vector<StoredObject>& objects,
                  ObjectManifest& manifest) {
  std::map<std::string, ManifestEntry> there = manifest.entries(), kept;
  for (const StoredObject& object : objects) {
    if (const auto found = there.find(object.path); found != there.end()) {
      kept.insert(there.extract(found));
    }
  }
  TUTTI_RETURN_IF_ERROR(manifest.Keep(kept));
  return base::RemoveTree(folder / kPartsName);
}

}  // namespace tutti::storage
