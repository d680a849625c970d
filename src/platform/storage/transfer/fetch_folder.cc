#include "platform/storage/transfer/fetch_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kBlockOfADisk = 4096;  // of most disks
constexpr size_t kMostSyncedEach = 32;

// Returns the bytes of what is neither there nor in a former folder; `in_blocks`: as they lie on a
// disk.
int64_t BytesToCome(const Survey& survey, const fs::path& folder, const FetchedBefore& before,
                    bool in_blocks) {
  const auto entries = before.manifest.entries();
  int64_t bytes = -BytesOfParts(folder);
  for (const StoredObject& object : survey.objects) {
    const auto found = entries.find(object.path);
    const bool is_there = found != entries.end() && found->second.bytes == object.bytes;
    // The version of other objects is not known yet.
    const bool is_former = IsSettled(object, before.settled_before)
                               ? before.formers.Has(object, /*is_settled=*/true)
                               : before.formers.HasLike(object);
    if (is_there || is_former) continue;
    bytes += in_blocks ? (object.bytes + kBlockOfADisk - 1) / kBlockOfADisk * kBlockOfADisk
                       : object.bytes;
  }
  return bytes;
}

}  // namespace

absl::Status CheckFreeSpace(const Survey& survey, const fs::path& folder,
                            const FetchedBefore& before) {
  const int64_t needed = BytesToCome(survey, folder, before, /*in_blocks=*/false);
  const auto free = base::FreeBytes(folder);
  if (!free.ok() || needed <= 0 || *free >= static_cast<uint64_t>(needed)) {
    return absl::OkStatus();
  }
  return WithLacking(absl::ResourceExhaustedError(absl::StrCat(
                         "it needs ", base::BinarySize(needed), " in ", folder.string(), ", where ",
                         base::BinarySize(*free), " are free")),
                     needed - static_cast<int64_t>(*free));
}

absl::Status WithLackingOf(absl::Status failure, const Survey& survey, const fs::path& folder,
                           const FetchedBefore& before) {
  if (!absl::IsResourceExhausted(failure) || LackingOf(failure) > 0) return failure;
  if (absl::StrContains(failure.message(), "Too many open files")) {
    absl::Status other = absl::InternalError(failure.message());
    failure.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) { other.SetPayload(url, payload); });
    return other;
  }
  const int64_t to_come = BytesToCome(survey, folder, before, /*in_blocks=*/true);
  return WithLacking(std::move(failure), std::max(to_come, kBlockOfADisk));
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

namespace {

// A file that is gone, or below a path that is a file now, needs no sync.
bool IsGone(const absl::Status& opened) {
  return absl::IsNotFound(opened) || absl::StrContains(opened.message(), "Not a directory");
}

// Waits until a file's bytes are written, and tells an error of this file's own. `journaled`: the
// disk's journal has been waited for since.
absl::Status SyncFile(const fs::path& file, bool journaled) {
  const auto opened = base::Open(file, O_RDONLY);
  if (!opened.ok()) return IsGone(opened.status()) ? absl::OkStatus() : opened.status();
  constexpr unsigned kWhole =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const int failed =
      journaled ? ::sync_file_range(opened->get(), 0, 0, kWhole) : ::fdatasync(opened->get());
  return failed == 0 ? absl::OkStatus() : base::ErrnoStatus(file.string());
}

}  // namespace

// Syncing many files one by one would wait for the disk's journal each time, so that syncfs comes
// first. Its result covers what others write to the file system, too, and before Linux 5.8 it
// reports no error: so each file is synced as well.
UnsyncedFiles SyncFiles(const fs::path& folder, int folder_fd, const Survey& survey,
                        const ObjectManifest& manifest) {
  std::vector<std::string> files;
  std::set<fs::path> folders = {folder};
  const std::map<std::string, ManifestEntry> lines = manifest.entries();
  for (const StoredObject& object : survey.objects) {
    const auto line = lines.find(object.path);
    if (line == lines.end() || line->second.boot.empty()) continue;
    files.push_back(object.path);
    for (fs::path above = (folder / object.path).parent_path(); folders.insert(above).second;) {
      above = above.parent_path();
    }
  }
  const bool many = files.size() > kMostSyncedEach;
  const bool journaled = many && ::syncfs(folder_fd) == 0;
  UnsyncedFiles unsynced;
  for (const std::string& file : files) {
    const absl::Status synced = SyncFile(folder / file, journaled);
    if (synced.ok()) continue;
    unsynced.status.Update(synced);
    unsynced.paths.insert(file);
  }
  if (journaled) return unsynced;
  for (const fs::path& one : folders) {
    const absl::Status synced = base::SyncDirectory(one);
    if (!IsGone(synced)) unsynced.status.Update(synced);
  }
  return unsynced;
}

// The files first: without them their lines do no harm.
void RemoveUnsynced(const fs::path& folder, const std::set<std::string>& paths,
                    ObjectManifest& manifest) {
  std::map<std::string, ManifestEntry> kept = manifest.entries();
  std::error_code error;
  for (const std::string& path : paths) {
    fs::remove(folder / path, error);
    kept.erase(path);
  }
  manifest.Keep(kept, folder / kPartsName).IgnoreError();
}

absl::Status Tidy(const fs::path& folder, const std::vector<StoredObject>& objects,
                  ObjectManifest& manifest) {
  std::map<std::string, ManifestEntry> there = manifest.entries(), kept;
  for (const StoredObject& object : objects) {
    if (const auto found = there.find(object.path); found != there.end()) {
      kept.insert(there.extract(found));
    }
  }
  TUTTI_RETURN_IF_ERROR(manifest.Keep(kept, folder / kPartsName));
  return base::RemoveTree(folder / kPartsName);
}

}  // namespace tutti::storage
