// Computes the checksums that S3 keeps of objects beside their ETags: CRC-32 (zlib's), CRC-32C,
// CRC-64/NVME, SHA-1 and SHA-256. Plain values; a running one is not thread-safe.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::storage {

enum class ChecksumKind { kNone, kCrc32, kCrc32c, kCrc64Nvme, kSha1, kSha256 };

// Returns the name in S3's headers: "crc64nvme".
const char* NameOf(ChecksumKind kind);
// Bytes that a checksum of the kind has.
size_t BytesOf(ChecksumKind kind);
// Returns whether different bytes hardly ever have the same checksum, which has 64 bits or more
// then.
bool IsStrong(ChecksumKind kind);

struct Checksum {
  ChecksumKind kind = ChecksumKind::kNone;
  std::string bytes;  // the most significant first
  bool operator==(const Checksum&) const = default;
};
// "crc64nvme rosUhgp5mIg="
std::string TextOf(const Checksum& checksum);

// RunningChecksum is the checksum of bytes that come one after the other.
class RunningChecksum {
 public:
  explicit RunningChecksum(ChecksumKind kind);
  void Update(absl::string_view bytes);
  // Ends it; the object takes no more bytes.
  Checksum Finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  ChecksumKind kind_;
  uint64_t crc_ = 0;
  std::unique_ptr<EVP_MD_CTX, Free> digest_;  // of kSha1 and kSha256
};

}  // namespace tutti::storage
