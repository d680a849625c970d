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
  // NotFound if there is no such file. FailedPrecondition, with what to do, if others may read it
  // or a line is no key.
  static absl::StatusOr<KeyRing> Read(const std::filesystem::path& file);
  // The same; makes the file, with a new key and mode 0600, if there is none.
  static absl::StatusOr<KeyRing> ReadOrMake(const std::filesystem::path& file);

  // As a whole, mode 0600; on the disk once it returns.
  absl::Status Write(const std::filesystem::path& file) const;
  // A new key before all others; all keys but the first.
  void AddNewKey();
  void DropFormerKeys();

  // Of the first key.
  std::string id() const { return IdOf(keys_.front()); }
  absl::StatusOr<SealedValue> SealValue(absl::string_view value, absl::string_view name) const;
  // FailedPrecondition if its key is none of these, DataLoss if it is damaged or of another name.
  absl::StatusOr<std::string> Open(const SealedValue& value, absl::string_view name) const;

 private:
  // Tells keys apart and says nothing else of one: of its SHA-256, as hexadecimal.
  static std::string IdOf(absl::string_view key);

  std::vector<std::string> keys_;  // never empty
};

}  // namespace tutti::service
