#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/machine/disk_encryption.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

using base::DiskEncryption;

std::string InWords(const DiskEncryption& found) {
  switch (found.kind) {
    case DiskEncryption::Kind::kEncrypted:
      return absl::StrCat("encrypted (", found.how, ")");
    case DiskEncryption::Kind::kPlain:
      return absl::StrCat("not by this machine (", found.how, ")");
    case DiskEncryption::Kind::kMemory:
      return "in memory, and in the swap space if there is one";
    case DiskEncryption::Kind::kElsewhere:
      return absl::StrCat("as the server of ", found.how, " does it");
    case DiskEncryption::Kind::kUnknown:
      return absl::StrCat("not known: ", found.how);
  }
  return "";
}

}  // namespace

Check CheckEncryption(const DoctorSubject& subject) {
  const std::pair<std::string, std::filesystem::path> looked_at[] = {
      {"state", subject.home},
      {"logs and results", subject.home / "jobs"},
      {"data", subject.home / "data"}};
  const std::vector<base::Mount> mounts = base::ReadMounts();
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // words, what they are of
  for (const auto& [name, folder] : looked_at) {
    const std::string words = InWords(base::EncryptionOf(folder, mounts));
    if (found.empty() || found.back().first != words) found.push_back({words, {}});
    found.back().second.push_back(name);
  }
  std::vector<std::string> told;
  for (const auto& [words, names] : found) {
    told.push_back(absl::StrCat(absl::StrJoin(names, ", "), ": ", words));
  }
  return {"encryption", Check::Outcome::kOk, absl::StrJoin(told, "; "), ""};
}

}  // namespace tutti::client
