#include "platform/storage/objects/checksum.h"

#include <zlib.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/checksum/crc32c.h"
#include "platform/storage/objects/crc64_nvme.h"

namespace tutti::storage {
namespace {

std::string BigEndian(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = size; i-- > 0;) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

uint32_t Crc32(absl::string_view bytes, uint32_t before) {
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

const char* NameOf(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::kNone:
      return "none";
    case ChecksumKind::kCrc32:
      return "crc32";
    case ChecksumKind::kCrc32c:
      return "crc32c";
    case ChecksumKind::kCrc64Nvme:
      return "crc64nvme";
    case ChecksumKind::kSha1:
      return "sha1";
    case ChecksumKind::kSha256:
      return "sha256";
  }
  return "";
}

size_t BytesOf(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::kNone:
      return 0;
    case ChecksumKind::kCrc32:
    case ChecksumKind::kCrc32c:
      return 4;
    case ChecksumKind::kCrc64Nvme:
      return 8;
    case ChecksumKind::kSha1:
      return 20;
    case ChecksumKind::kSha256:
      return 32;
  }
  return 0;
}

bool IsStrong(ChecksumKind kind) { return BytesOf(kind) >= 8; }

std::string TextOf(const Checksum& checksum) {
  return absl::StrCat(NameOf(checksum.kind), " ", absl::Base64Escape(checksum.bytes));
}

// A system that forbids SHA-1 (FIPS) goes without.
RunningChecksum::RunningChecksum(ChecksumKind kind) : kind_(kind) {
  if (kind != ChecksumKind::kSha1 && kind != ChecksumKind::kSha256) return;
  digest_.reset(EVP_MD_CTX_new());
  const EVP_MD* const method = kind == ChecksumKind::kSha1 ? EVP_sha1() : EVP_sha256();
  if (EVP_DigestInit_ex(digest_.get(), method, nullptr) != 1) kind_ = ChecksumKind::kNone;
}

void RunningChecksum::Update(absl::string_view bytes) {
  switch (kind_) {
    case ChecksumKind::kNone:
      return;
    case ChecksumKind::kCrc32:
      crc_ = Crc32(bytes, static_cast<uint32_t>(crc_));
      return;
    case ChecksumKind::kCrc32c:
      crc_ = base::Crc32c(bytes, static_cast<uint32_t>(crc_));
      return;
    case ChecksumKind::kCrc64Nvme:
      crc_ = Crc64Nvme(bytes, crc_);
      return;
    case ChecksumKind::kSha1:
    case ChecksumKind::kSha256:
      EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size());
  }
}

Checksum RunningChecksum::Finish() {
  if (kind_ == ChecksumKind::kNone) return {};
  if (digest_ == nullptr) return {kind_, BigEndian(crc_, BytesOf(kind_))};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(digest_.get(), digest.data(), &size);
  return {kind_, std::string(digest.begin(), digest.begin() + size)};
}

}  // namespace tutti::storage
