#include "platform/storage/objects/content_hash.h"

#include <array>
#include <span>

namespace tutti::storage {

// The one of SHA-256 there is anyhow.
ContentHash::ContentHash(Kinds kinds)
    : kind_(kinds.checksum),
      checksum_(kind_ == ChecksumKind::kSha256 ? ChecksumKind::kNone : kind_) {
  if (!kinds.md5) return;
  md5_.reset(EVP_MD_CTX_new());
  // A system that forbids MD5 (FIPS) goes without that check.
  if (EVP_DigestInit_ex(md5_.get(), EVP_md5(), nullptr) != 1) md5_.reset();
}

void ContentHash::Update(absl::string_view bytes) {
  sha256_.Update(bytes);
  checksum_.Update(bytes);
  if (md5_ != nullptr) EVP_DigestUpdate(md5_.get(), bytes.data(), bytes.size());
}

ContentHash::Result ContentHash::Finish() {
  Result result;
  const base::Sha256Digest sha256 = sha256_.Finish();
  result.sha256 = base::Hex(sha256);
  result.checksum = kind_ == ChecksumKind::kSha256
                        ? Checksum{kind_, std::string(sha256.begin(), sha256.end())}
                        : checksum_.Finish();
  if (md5_ != nullptr) {
    std::array<uint8_t, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    EVP_DigestFinal_ex(md5_.get(), digest.data(), &size);
    result.md5 = base::Hex(std::span<const uint8_t>(digest.data(), size));
  }
  return result;
}

}  // namespace tutti::storage
