// Makes a file of a local folder, a store among others, of bytes that come block by block: it
// appears whole, by a rename, under its name, where readers have what was there until then.
#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "platform/storage/objects/file_blocks.h"
#include "platform/storage/objects/object_store.h"

namespace tutti::storage {

// NotFound if a local store's root is there no more; OK if none is known.
absl::Status CheckRoot(const std::filesystem::path& root);

// Calls `give`, which hands the blocks on and returns how that has ended, and makes them the file
// `to`, in folders that are made if they are not there. `root` is not made, nor what is above it:
// it may be a mount that is missing, and then the node's own disk would get the files; NotFound if
// it is no folder. Empty: nothing is known of it. After an error there is what was there
// before; a process that is killed leaves a file whose name begins with kPutPrefix. `sent` is as of
// ObjectStore::Put. Errors of the folder's disk are by their errno.
absl::Status PutLocalFile(const std::filesystem::path& to, const std::filesystem::path& root,
                          const std::function<absl::Status(const TakeBlock&)>& give,
                          const SentListener& sent);

}  // namespace tutti::storage
