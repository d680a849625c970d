// SHA-256 and, where they are asked for, MD5 (RFC 1321) and a store's checksum of the same bytes in
// one pass. Not thread-safe.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "platform/storage/objects/checksum.h"

namespace tutti::storage {

class ContentHash {
 public:
  struct Kinds {
    bool md5 = false;
    ChecksumKind checksum = ChecksumKind::kNone;
  };
  explicit ContentHash(Kinds kinds);
  void Update(absl::string_view bytes);

  struct Result {
    std::string sha256, md5;  // hexadecimal; md5 empty without
    Checksum checksum;        // of the kind that was asked for
  };
  // Ends the hash; the object takes no more bytes.
  Result Finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  base::Sha256 sha256_;
  std::unique_ptr<EVP_MD_CTX, Free> md5_;  // null: without
  const ChecksumKind kind_;
  RunningChecksum checksum_;
};

}  // namespace tutti::storage
