// KeyRing is the keys under which a service's secrets are sealed: a file outside of the database, a
// line for each, 64 hexadecimal digits. The first one seals, and all of them open, so that a new
// key can be put before those that are in use. Plain values; thread-safe once read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::service {

struct SealedValue {
  std::string key;  // the id of its key
  std::string sealed;
};

class KeyRing {
 public:
  // Reads the keys; NotFound if there is no such file. FailedPrecondition, with what to do, if
  // its group or others may read it or a line is no key.
  static absl::StatusOr<KeyRing> Read(const std::filesystem::path& file);
  // Makes the file, with a new key and mode 0600.
  static absl::StatusOr<KeyRing> Make(const std::filesystem::path& file);

  // Writes the file as a whole, with mode 0600; it is on the disk once this returns.
  absl::Status Write(const std::filesystem::path& file) const;
  // Add a new key before all others; drop all keys but the first.
  void AddNewKey();
  void DropFormerKeys();

  // Return the id of the first key; seal a value with it.
  std::string id() const { return IdOf(keys_.front()); }
  absl::StatusOr<SealedValue> SealValue(absl::string_view value, absl::string_view name) const;
  // Opens a value; FailedPrecondition if its key is none of these, DataLoss if it is damaged or of
  // another name.
  absl::StatusOr<std::string> Open(const SealedValue& value, absl::string_view name) const;

 private:
  // Tells keys apart and says nothing else of one: of its SHA-256, as hexadecimal.
  static std::string IdOf(absl::string_view key);

  std::vector<std::string> keys_;  // never empty
};

}  // namespace tutti::service
