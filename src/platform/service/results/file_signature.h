// Signs the address of one file of a job, by which anybody can read it without a token until it
// ends. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::service {

// Names the file that an address is of.
struct SignedFile {
  std::string job;  // its id
  // The job's place in the order of submission: that of no other, also of one that has the id anew
  // once this one is deleted.
  int64_t submission = 0;
  std::string path;
  int64_t expires = 0;  // seconds since 1970
};

// Returns the HMAC-SHA-256 of the file and its end, hexadecimal; "" without a key, which is no
// signature of anything. `key`: ServiceOptions::launcher_key.
std::string FileSignature(absl::string_view key, const SignedFile& file);

// Returns whether the signature is that of this file and this end. Whether it has ended, and which
// job has the id now, is not looked at.
bool IsSigned(absl::string_view key, const SignedFile& file, absl::string_view signature);

// Returns the address, without the server:
// "/v1/signed-files/JOB/PATH?expires=…&submission=…&signature=…".
std::string SignedFileTarget(absl::string_view key, const SignedFile& file);

}  // namespace tutti::service
