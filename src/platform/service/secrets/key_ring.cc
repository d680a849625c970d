#include "platform/service/secrets/key_ring.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/seal.h"
#include "base/status.h"
#include "spec/site/site.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestKeyFile = 64 << 10;
constexpr size_t kIdDigits = 16;

bool IsHexKey(absl::string_view line) {
  return line.size() == 2 * base::kSealKeyBytes &&
         line.find_first_not_of("0123456789abcdefABCDEF") == absl::string_view::npos;
}

// Returns belongs_to of a secret's value, so that nothing else which is sealed is taken for one.
std::string Owner(absl::string_view name) { return absl::StrCat("secret ", name); }

absl::Status CheckMode(const fs::path& file) {
  struct stat info = {};
  if (::stat(file.c_str(), &info) != 0) return base::ErrnoStatus(file.native());
  const mode_t others = info.st_mode & (spec::IsCredential(file) ? S_IRWXO : S_IRWXG | S_IRWXO);
  if (others == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(file.native(), ", the key of the secrets, is open to ",
                   (others & S_IRWXO) != 0 ? "all users" : "its group", ": chmod 600 ",
                   file.native(), ", and give the secrets new values if somebody has read it"));
}

}  // namespace

std::string KeyRing::IdOf(absl::string_view key) {
  return base::Hex(base::Sha256Of(absl::StrCat("key of secrets ", key))).substr(0, kIdDigits);
}

absl::StatusOr<KeyRing> KeyRing::Read(const fs::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargestKeyFile));
  TUTTI_RETURN_IF_ERROR(CheckMode(file));
  KeyRing ring;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    if (!IsHexKey(line)) {
      return absl::FailedPreconditionError(
          absl::StrCat(file.native(), " holds no keys of 64 hexadecimal digits, a line each"));
    }
    ring.keys_.push_back(absl::HexStringToBytes(line));
  }
  if (!ring.keys_.empty()) return ring;
  return absl::FailedPreconditionError(
      absl::StrCat(file.native(), " is empty: bring the key back, or remove the file"));
}

absl::StatusOr<KeyRing> KeyRing::Make(const fs::path& file) {
  KeyRing fresh;
  fresh.AddNewKey();
  TUTTI_RETURN_IF_ERROR(fresh.Write(file));
  return fresh;
}

absl::Status KeyRing::Write(const fs::path& file) const {
  std::string text;
  for (const std::string& key : keys_) absl::StrAppend(&text, absl::BytesToHexString(key), "\n");
  return base::WriteFileAtomic(file, text, 0600);
}

void KeyRing::AddNewKey() { keys_.insert(keys_.begin(), base::RandomBytes(base::kSealKeyBytes)); }

void KeyRing::DropFormerKeys() { keys_.resize(1); }

absl::StatusOr<SealedValue> KeyRing::SealValue(absl::string_view value,
                                               absl::string_view name) const {
  TUTTI_ASSIGN_OR_RETURN(std::string sealed, base::Seal(keys_.front(), value, Owner(name)));
  return SealedValue{id(), std::move(sealed)};
}

absl::StatusOr<std::string> KeyRing::Open(const SealedValue& value, absl::string_view name) const {
  for (const std::string& key : keys_) {
    if (IdOf(key) == value.key) return base::Unseal(key, value.sealed, Owner(name));
  }
  return absl::FailedPreconditionError("it is sealed under another key");
}

}  // namespace tutti::service
