// Makes a file of a local folder, a store among others, of bytes that come block by block: it
// appears whole, by a rename, under its name, where readers have what was there until then.
#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "platform/storage/objects/object_store.h"

namespace tutti::storage {

// Takes the next block; its error ends the work of who gives them.
using TakeBlock = std::function<absl::Status(const char* data, size_t size)>;

// Calls `give`, which hands the blocks on and returns how that has ended, and makes them the file
// `to`, in folders that are made if they are not there. After an error there is what was there
// before; a process that is killed leaves a file whose name begins with kPutPrefix. `sent` is as of
// ObjectStore::Put. Errors of the folder's disk are by their errno.
absl::Status PutLocalFile(const std::filesystem::path& to,
                          const std::function<absl::Status(const TakeBlock&)>& give,
                          const SentListener& sent);

}  // namespace tutti::storage
