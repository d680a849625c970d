// Builds tar archives in memory for tests, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::data {

class TarBuilder {
 public:
  TarBuilder& Add(absl::string_view name, absl::string_view content, char type = '0');
  // Puts the member's name in a GNU 'L' member or a pax header before it.
  TarBuilder& AddWithGnuName(absl::string_view name, absl::string_view content);
  TarBuilder& AddWithPaxPath(absl::string_view name, absl::string_view content);
  // Returns a header whose size field says `size`, with a right checksum and no content.
  TarBuilder& AddHeader(absl::string_view name, uint64_t size, char type = '0');
  // Returns the archive, with the two zero blocks at the end.
  std::string Finish() const;

 private:
  std::string bytes_;
};

// Returns "17 path=a\n": a pax record, its length included.
std::string PaxRecord(absl::string_view key, absl::string_view value);

// Returns one frame of Zstandard, as of a shard that is packed.
std::string Compress(absl::string_view bytes);

// Returns what gzip, or zlib, makes of it.
enum class Deflated { kGzip, kZlib };
std::string Deflate(absl::string_view bytes, Deflated as);

// Writes the checksum that belongs to the header block at `offset`.
void FixTarChecksum(std::string& archive, size_t offset);

}  // namespace tutti::data
