#include "platform/storage/transfer/former_fetch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

// Compares its size and time, and with `verify` its hash.
bool IsUnchanged(const fs::path& source, const ManifestEntry& entry, absl::Time written,
                 bool verify) {
  struct stat info = {};
  if (::lstat(source.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != entry.bytes || absl::TimeFromTimespec(info.st_mtim) > written) {
    return false;
  }
  if (!verify) return true;
  const auto hash = base::Sha256OfFile(source);
  return hash.ok() && base::Hex(*hash) == entry.sha256;
}

}  // namespace

FormerFetches::FormerFetches(const std::vector<FormerFolder>& folders, absl::string_view base)
    : base_(base) {
  for (const FormerFolder& folder : folders) {
    struct stat info = {};
    const auto text = base::ReadFile(folder.objects);
    if (!text.ok() || ::stat(folder.objects.c_str(), &info) != 0) continue;
    formers_.push_back({.folder = folder.folder,
                        .base = folder.base,
                        .verify = folder.verify,
                        .entries = ManifestEntriesIn(*text),
                        .written = absl::TimeFromTimespec(info.st_mtim)});
  }
}

std::optional<std::string> FormerFetches::PathIn(const Former& former,
                                                 const StoredObject& object) const {
  if (former.base == base_) return object.path;
  const std::string whole = base_.empty() ? object.path : absl::StrCat(base_, "/", object.path);
  if (former.base.empty()) return whole;
  absl::string_view path = whole;
  if (!absl::ConsumePrefix(&path, absl::StrCat(former.base, "/"))) return std::nullopt;
  return std::string(path);
}

const ManifestEntry* FormerFetches::Find(const Former& former, const std::string& path,
                                         const StoredObject& object, bool is_settled) const {
  const auto found = former.entries.find(path);
  if (found == former.entries.end() || !IsOf(found->second, object, is_settled)) return nullptr;
  return &found->second;
}

bool FormerFetches::HasLike(const StoredObject& object) const {
  for (const Former& former : formers_) {
    const auto path = PathIn(former, object);
    const auto found = path ? former.entries.find(*path) : former.entries.end();
    if (found != former.entries.end() && found->second.bytes == object.bytes) return true;
  }
  return false;
}

bool FormerFetches::Has(const StoredObject& object, bool is_settled) const {
  for (const Former& former : formers_) {
    const auto path = PathIn(former, object);
    if (path && Find(former, *path, object, is_settled) != nullptr) return true;
  }
  return false;
}

absl::StatusOr<std::optional<ManifestEntry>> FormerFetches::LinkTo(const StoredObject& object,
                                                                   bool is_settled,
                                                                   const fs::path& folder,
                                                                   const fs::path& target) const {
  for (const Former& former : formers_) {
    const auto path = PathIn(former, object);
    const ManifestEntry* const entry = path ? Find(former, *path, object, is_settled) : nullptr;
    if (entry == nullptr) continue;
    const fs::path source = former.folder / *path;
    const bool verify = former.verify || MayBeLost(*entry);
    if (!IsUnchanged(source, *entry, former.written, verify)) continue;
    TUTTI_ASSIGN_OR_RETURN(const bool linked, LinkWhole(folder, object, source, target));
    if (linked) return *entry;
  }
  return std::nullopt;
}

}  // namespace tutti::storage
