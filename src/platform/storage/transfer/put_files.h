// Makes files the objects of a place, and removes objects, several at the same time. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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
  std::vector<std::string> files = {};  // relative to the folder; empty: all files below it
  // The store is asked whether it has a file already if that has so many bytes; a smaller one is
  // put in less time than the answer takes.
  int64_t asks_from = 0;
  Attempts attempts = {};
  ProgressListener progress = {};  // may be empty
  // Is told at the end, also of a call that fails, what the store has of each file that was put or
  // was there, with the file's path; may be empty.
  std::function<void(const StoredObject&)> has_put = {};
};

// Puts the files, symbolic links to files as what they point at, as objects below `base` ("": the
// container). An object of `asks_from` bytes or more that has the same bytes already, by its size
// and MD5, is left alone, so that the same call goes on where an earlier one ended. Other objects
// below `base` stay. An object that may not be read at the store is put without comparing it. A
// file that fails by itself does not stop the others: the error is about the first one, and counts
// the others; an error that all would meet (ConcernsAllObjects) ends the call. InvalidArgument,
// about the file, for what is no file or folder, for a named file that is not below the folder, and
// for a name that the store does not take;
// NotFound for one that is not there. An object that is there afterwards with another size is
// DataLoss, or Aborted if the file was written to meanwhile. What is wrong with a file here has the
// source kDisk. Cancelled as of `attempts`.
absl::StatusOr<StorageDone> PutFiles(ObjectStore& store, const std::string& base,
                                     const PutOptions& options);

// Puts an object without bytes, .tutti-probe, into the place, of a file system into the nearest of
// its folders that is there, and removes it: it asks the store for nothing that a put does not
// need. One that may not be removed stays, which is no error. Other errors are those of Put and
// Remove.
absl::Status ProbeWriting(ObjectStore& store, const spec::DataPlace& place,
                          const Attempts& attempts);

// Removes what the survey found.
// Files of this machine that lie behind a linked folder stay: they are not the place's.
absl::StatusOr<StorageDone> RemoveObjects(ObjectStore& store, const spec::DataPlace& place,
                                          const Survey& survey, int connections,
                                          const Attempts& attempts);

// Removes all that is at the place, which the survey found there, and the folder that it is.
absl::StatusOr<StorageDone> RemovePlace(ObjectStore& store, const spec::DataPlace& place,
                                        const Survey& survey, int connections,
                                        const Attempts& attempts);

}  // namespace tutti::storage
