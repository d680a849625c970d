// ShardBytes holds the bytes of one shard: a plain file is mapped, a compressed one (name ends in
// .zst, .gz or .tgz) is decompressed into memory when it is opened. Immutable after opening;
// thread-safe.
// A mapped file must not be shortened while it is open: the kernel answers a read past its end with
// SIGBUS.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

// The most that a compressed shard may unpack to: it stays in memory as long as the dataset. Larger
// shards belong on the disk uncompressed, where they are mapped.
inline constexpr size_t kMaxUnpackedShard = size_t{1} << 30;

// Returns whether bytes begin as gzip's or zlib's streams do.
bool IsDeflated(absl::string_view bytes);

class ShardBytes {
 public:
  // Opens a file. NotFound, PermissionDenied, …: the file cannot be opened; DataLoss: damaged or
  // cut short; ResourceExhausted: unpacks to more than `max_unpacked`. Errors do not name the file.
  static absl::StatusOr<ShardBytes> Open(const std::filesystem::path& path,
                                         size_t max_unpacked = kMaxUnpackedShard);

  // Unpacks what IsDeflated. Errors as Open's.
  static absl::StatusOr<ShardBytes> Inflate(absl::string_view packed,
                                            size_t max_unpacked = kMaxUnpackedShard);

  absl::string_view view() const { return {bytes_.get(), size_}; }
  // Asks the kernel to read this part soon; returns at once.
  void WillNeed(size_t offset, size_t size) const;

 private:
  struct Release {
    size_t mapped;  // 0: from malloc
    void operator()(const char* bytes) const;
  };
  using Memory = std::unique_ptr<const char, Release>;

  ShardBytes(Memory bytes, size_t size) : bytes_(std::move(bytes)), size_(size) {}
  static absl::StatusOr<ShardBytes> Map(const std::filesystem::path& path);
  static absl::StatusOr<ShardBytes> Unpack(absl::string_view packed, size_t max_unpacked);

  Memory bytes_;
  size_t size_;
};

}  // namespace tutti::data
