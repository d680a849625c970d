// Computes SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104) by OpenSSL; makes random bytes; writes
// bytes as hexadecimal.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

using Sha256Digest = std::array<uint8_t, 32>;

// A running hash. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Update(absl::string_view bytes);
  // Ends the hash; the object takes no more bytes.
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(absl::string_view bytes);
// Hashes a file's content, which is read in blocks. Fails if the file cannot be read.
absl::StatusOr<Sha256Digest> Sha256OfFile(const std::filesystem::path& path);
Sha256Digest HmacSha256(absl::string_view key, absl::string_view message);

// Compares in a time that does not depend on the content.
bool EqualInConstantTime(absl::string_view a, absl::string_view b);

// Returns the bytes as lower-case hexadecimal, two characters a byte.
std::string Hex(std::span<const uint8_t> bytes);

// Returns `count` bytes from the system's cryptographic generator; RandomHex as hexadecimal.
std::string RandomBytes(size_t count);
std::string RandomHex(size_t count);

}  // namespace tutti::base
