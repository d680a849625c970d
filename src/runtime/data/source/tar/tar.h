// Reads tar archives that lie in memory: ustar (POSIX.1-1988), GNU long names and pax paths and
// sizes (POSIX.1-2001). Every length is checked against the archive, so hostile bytes give an error
// and never a read outside of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

inline constexpr uint64_t kTarBlock = 512;

struct TarHeader {
  std::string name;   // ustar's prefix and name joined
  uint64_t size = 0;  // of the content, bytes
  char type = '0';    // '0' regular file, '5' folder, 'L' GNU long name, 'x' pax, …
};

// Parses one header block. DataLoss when the checksum or a number is wrong.
absl::StatusOr<TarHeader> ParseTarHeader(std::span<const uint8_t, kTarBlock> block);

struct TarMember {
  std::string name;
  uint64_t header = 0;        // offset of its header in the archive
  absl::string_view content;  // in the archive's memory
};

// Walks over the regular files of an archive; folders, links and devices are passed over.
// Not thread-safe.
class TarReader {
 public:
  // `archive` must outlive the reader and the members' contents.
  explicit TarReader(absl::string_view archive) : archive_(archive) {}

  // Returns the next regular file; nothing at the archive's end. Errors are DataLoss and give the
  // offset: a header that is none, a content that goes beyond the archive, an archive without its
  // closing zero block (cut short), bytes after it (archives joined by `cat`).
  absl::StatusOr<std::optional<TarMember>> Next();

 private:
  absl::StatusOr<std::optional<TarHeader>> NextHeader();
  absl::StatusOr<absl::string_view> TakeContent(const TarHeader& header);
  absl::Status ReadPax(absl::string_view records);
  absl::Status CheckEnd() const;
  absl::Status Lost(uint64_t offset, absl::string_view what) const;

  absl::string_view archive_;
  uint64_t position_ = 0;
  uint64_t header_ = 0;              // offset of the header that was read last
  std::optional<std::string> name_;  // of the next member, from GNU or pax headers
  std::optional<uint64_t> size_;     // likewise
};

// Makes a tar archive (ustar) in memory. Not thread-safe.
class TarWriter {
 public:
  // Adds a member; `name` has at most 100 bytes, `content` at most 8 GiB.
  void Add(absl::string_view name, absl::string_view content);
  size_t size() const { return archive_.size(); }
  // Returns the archive with its closing blocks; the writer is empty then.
  std::string Finish();

 private:
  std::string archive_;
};

}  // namespace tutti::data
