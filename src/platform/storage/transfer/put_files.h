// Makes files the objects of a place, and removes objects, several at the same time. Thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/attempts.h"
#include "platform/storage/transfer/place_survey.h"
#include "platform/storage/transfer/progress_counter.h"

namespace tutti::storage {

struct PutOptions {
  std::filesystem::path folder;
  int connections = 16;
  Attempts attempts;
  ProgressListener progress;  // may be empty
};

// Puts all files below the folder, symbolic links to files as what they point at, as objects below
// `base` ("": the container). An object that has the same bytes already, by its size and MD5, is
// left alone, so that the same call goes on where an earlier one ended. Other objects below `base`
// stay. InvalidArgument, about the file, for what is no file or folder. An object that is there
// afterwards with another size is DataLoss.
absl::StatusOr<StorageDone> PutFiles(ObjectStore& store, const std::string& base,
                                     const PutOptions& options);

// Removes what the survey found.
absl::StatusOr<StorageDone> RemoveObjects(ObjectStore& store, const Survey& survey, int connections,
                                          const Attempts& attempts);

}  // namespace tutti::storage
