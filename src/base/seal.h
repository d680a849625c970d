// Encrypts short texts so that a change of theirs, or of what they belong to, is noticed:
// AES-256-GCM (NIST SP 800-38D) by OpenSSL, with a random nonce of 96 bits for each, which is safe
// for 2^32 texts of one key. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

inline constexpr size_t kSealKeyBytes = 32;

// Seals `text`; `key` has kSealKeyBytes. What `belongs_to` says is not in the result, and must be
// given again.
absl::StatusOr<std::string> Seal(absl::string_view key, absl::string_view text,
                                 absl::string_view belongs_to);
// Opens what Seal has made; DataLoss for another key, another `belongs_to`, or bytes that Seal has
// not made.
absl::StatusOr<std::string> Unseal(absl::string_view key, absl::string_view sealed,
                                   absl::string_view belongs_to);

}  // namespace tutti::base
