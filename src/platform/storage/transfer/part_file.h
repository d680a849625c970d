// PartFile is a file of which ranges are there, in any order: FOLDER/.tutti-parts/KEY has the
// bytes, KEY.ranges which of them. A process that is killed leaves both, and the next goes on with
// the ranges that lack. After another start of the machine nothing of it counts: what was written
// may not have reached the disk. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

inline constexpr char kPartsName[] = ".tutti-parts";

class PartFile {
 public:
  // Takes over what is there of this version of the object, in ranges of `range_bytes`, from an
  // earlier process of this start of the machine (`boot_id`); else begins anew. ResourceExhausted,
  // and nothing is taken of the disk, if it has no room for the whole.
  static absl::StatusOr<std::unique_ptr<PartFile>> Open(const std::filesystem::path& folder,
                                                        const StoredObject& object,
                                                        int64_t range_bytes,
                                                        absl::string_view boot_id);

  int64_t range_count() const { return static_cast<int64_t>(was_there_.size()); }
  // Returns the bytes of a range; the last one may have fewer than the others.
  int64_t RangeBytes(int64_t range) const;
  int64_t OffsetOf(int64_t range) const { return range * range_bytes_; }
  // Returns whether the range was there when the file was opened.
  bool WasThere(int64_t range) const { return was_there_[range]; }

  // Writes a whole range and notes that it is there. ResourceExhausted if the disk is full.
  absl::Status Write(int64_t range, std::span<const char> bytes);
  // Does the same in pieces: first all bytes of a range are written, by one or several calls.
  absl::Status WritePiece(int64_t offset, std::span<const char> bytes);
  absl::Status NoteWritten(int64_t range);
  // Fills `out` from the bytes at `offset`.
  absl::Status ReadBack(int64_t offset, std::span<char> out) const;
  // Makes the file, all of whose ranges are there, that of `target`. SyncFiles (fetch_folder.h)
  // puts it on the disk for good. Nobody reads nor writes the part then.
  absl::Status Finish(const std::filesystem::path& target);
  // Removes what is there.
  void Discard();

 private:
  PartFile() = default;
  absl::StatusOr<bool> TakeOver(absl::string_view header);
  absl::Status Reserve();

  std::filesystem::path path_, ranges_path_;
  absl::Mutex writing_;  // a file system lets one write at a time, and those that wait for it spin
  base::UniqueFd file_, ranges_;
  int64_t bytes_ = 0, range_bytes_ = 0, header_bytes_ = 0;
  std::vector<bool> was_there_;
};

// Writes a small file in the same way, at once: a reader sees all of it or none.
absl::Status WriteWhole(const std::filesystem::path& folder, const StoredObject& object,
                        std::span<const char> bytes, const std::filesystem::path& target);

// Makes a file that lies elsewhere `target` as well, by a hard link, in one step. False if it
// cannot be linked there: it is of another file system or another user's, or has too many links.
absl::StatusOr<bool> LinkWhole(const std::filesystem::path& folder, const StoredObject& object,
                               const std::filesystem::path& source,
                               const std::filesystem::path& target);

// Fills `out` with the bytes from `offset` on of an object that is a file of the folder, or of a
// large one that becomes one and whose ranges there have come.
absl::Status ReadFetched(const std::filesystem::path& folder, const StoredObject& object,
                         int64_t offset, std::span<char> out);
// Returns the bytes that the parts in a folder take on the disk.
int64_t BytesOfParts(const std::filesystem::path& folder);

}  // namespace tutti::storage
