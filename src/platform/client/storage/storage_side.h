// StorageSide is one end of a copy, whatever holds it: a store or a folder of this machine
// (store_side.h), or a job's files at the service (job_side.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/client/storage/storage_address.h"
#include "platform/storage/storage_request.h"

namespace tutti::client {

struct Listing {
  bool is_file = false;  // the address is one object
  std::string base;      // the folder that the objects' paths are relative to
  // They are sorted by path. Folders, which only a list that is not recursive has, end with "/".
  // `modified` may be 0.
  std::vector<storage::StoredObject> objects;
  std::vector<storage::StoredObject> left_out = {};  // what lies there and is no object, and why
};

// BytesListener is called with how many bytes of the files of one call have been copied so far.
using BytesListener = std::function<void(int64_t bytes)>;

// Paths of `files` are relative to `base`, a folder of the side; those on this machine's disk to
// `folder`, which is absolute. One call at a time.
class StorageSide {
 public:
  virtual ~StorageSide() = default;
  virtual const StorageAddress& address() const = 0;
  // Returns the whole name of a job of which the address has the beginning; "" of a store.
  virtual std::string holder() const { return ""; }
  // Lists what is at the address; NotFound if nothing is.
  virtual absl::StatusOr<Listing> List(bool recursive) = 0;
  // Brings files into the folder. What is there after an error is taken up by the next call.
  virtual absl::Status Fetch(const std::string& base, const std::vector<std::string>& files,
                             const std::filesystem::path& folder,
                             const BytesListener& listener) = 0;
  virtual absl::Status Put(const std::string& base, const std::vector<std::string>& files,
                           const std::filesystem::path& folder, const BytesListener& listener) = 0;
  virtual absl::Status Remove(const std::string& base, const std::vector<std::string>& files) = 0;
  // Removes all that is at the address, of a folder the folder too.
  virtual absl::Status RemoveAll() = 0;
};

}  // namespace tutti::client
