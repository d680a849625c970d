// Brings objects into a folder: small ones several at the same time, large ones in ranges that come
// at the same time, all by one number of connections. A file appears whole, once what came is what
// the store has, by the store's checksum or, where there is none, by an unchanged version
// afterwards. Peers give each other what each has fetched (piece_exchange.h). What another folder
// has of an earlier fetch is linked (former_fetch.h). Thread-safe, but for two fetches into one
// folder.
//
// Memory: at most `connections` ranges. What is there when it ends early is taken up by the next
// fetch into the folder: files by object_manifest.h, ranges by part_file.h.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/attempts.h"
#include "platform/storage/transfer/place_survey.h"
#include "platform/storage/transfer/progress_counter.h"

namespace tutti::storage {

struct FetchOptions {
  std::filesystem::path folder;  // made if it is not there
  int connections = 16;
  int64_t range_bytes = 8 << 20;
  // These are as in StorageRequest.
  int64_t settled_before = 0;
  std::vector<FormerFolder> formers = {};
  std::optional<Peers> peers = {};
  Attempts attempts;
  ProgressListener progress;  // may be empty
};

// Fetches what the survey found. Files of earlier fetches into the folder that the survey does not
// have are removed. Errors, about the object where it is one's: those of ObjectStore;
// ResourceExhausted if the disk is full or has too little room; Aborted if an object has changed or
// is gone; DataLoss if what came is not what the store has.
absl::StatusOr<StorageDone> FetchObjects(ObjectStore& store, const Survey& survey,
                                         const FetchOptions& options);

}  // namespace tutti::storage
