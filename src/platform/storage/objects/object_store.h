// ObjectStore is a store of objects, as the program sees it whatever the provider: names with bytes
// in one container. Paths are those in the container, without a slash at their beginning or end; ""
// is the container itself. All functions are thread-safe and block; several hundred may be called
// at the same time.
//
// Errors, whose messages are phrases without the place and without a secret: PermissionDenied,
// NotFound, Unavailable (to be tried again), Aborted (the object has changed), InvalidArgument
// (cannot be had). Others are unexpected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/objects/checksum.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

using PieceTaker = std::function<absl::Status(absl::string_view piece)>;

// ObjectReader is one object, of whose version the store was asked when it was opened.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  // Its path is that in the container.
  const StoredObject& object() const { return object_; }
  // Returns whether `object().md5` is certainly that of the content. For S3 it is the ETag, which
  // is another hash if a key of the key service encrypts the object.
  bool md5_is_certain() const { return md5_is_certain_; }
  // Returns the checksum that the store certainly keeps of the whole content, beside the MD5; there
  // may be none.
  const Checksum& checksum() const { return checksum_; }
  // Fills `out` with the bytes from `offset` on; DataLoss or Unavailable if fewer come.
  virtual absl::Status Read(int64_t offset, std::span<char> out) = 0;

  // Returns the whole content, where it came with the answer that told of the object.
  virtual std::optional<absl::string_view> content() const { return std::nullopt; }
  // Returns whether all that was read so far is certainly of this version, as each answer has said.
  virtual bool is_of_one_version() const { return false; }
  // Returns whether it passes bytes on as they arrive, which spares a caller that takes pieces a
  // copy.
  virtual bool streams() const { return false; }
  // Calls `take` with the `bytes` bytes from `offset` on, in their order; an error that it returns
  // ends it. What was taken before another error is right. Of who does not stream, in one piece.
  virtual absl::Status Stream(int64_t offset, int64_t bytes, const PieceTaker& take) {
    std::vector<char> buffer(static_cast<size_t>(bytes));
    if (absl::Status read = Read(offset, buffer); !read.ok()) return read;
    return take({buffer.data(), buffer.size()});
  }

 protected:
  ObjectReader(StoredObject object, bool md5_is_certain, Checksum checksum = {})
      : object_(std::move(object)),
        md5_is_certain_(md5_is_certain),
        checksum_(std::move(checksum)) {}

 private:
  const StoredObject object_;
  const bool md5_is_certain_;
  const Checksum checksum_;
};

using SentListener = std::function<absl::Status(int64_t bytes)>;

enum class PathKind { kNothing, kFile, kFolder };

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // Returns what is at the path. An object wins over a folder of its name.
  virtual absl::StatusOr<PathKind> KindOf(const std::string& path) = 0;
  // Returns the objects below a folder, in any order, or with `recursive` false those in it alone
  // and its folders, whose paths end with "/". They may lack ETag and MD5. What lies in a folder of
  // a file system and is no object is among them, with `left_out`. NotFound if there is no such
  // folder.
  virtual absl::StatusOr<std::vector<StoredObject>> List(const std::string& folder,
                                                         bool recursive) = 0;
  // Asks the store for an object's version.
  virtual absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path) = 0;
  // The same for an object that is going to be read as a whole, and has at most so many bytes by
  // what is known of it: its content may come at once.
  virtual absl::StatusOr<std::unique_ptr<ObjectReader>> OpenWhole(const std::string& path,
                                                                  int64_t /*most*/) {
    return Open(path);
  }
  // Makes a file the object of that path, or takes the place of one that is there, which readers
  // have until the new one is whole. `sent` is told of each block: how many bytes it had; an error
  // that it returns ends the put, which leaves nothing, and is its result. Errors of the file have
  // the source kDisk (storage_fault.h).
  virtual absl::Status Put(const std::string& path, const std::filesystem::path& file,
                           const SentListener& sent) = 0;
  // OK if there is no such object.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Removes a folder whose objects have been removed, where one is there without any: of a file
  // system, or by the mark that some programs leave in a store. What lies in it goes too.
  virtual absl::Status RemoveFolder(const std::string& path) = 0;
};

}  // namespace tutti::storage
