#include "platform/storage/transfer/former_fetch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/file.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {

FormerFetch::FormerFetch(std::filesystem::path folder, const std::filesystem::path& objects)
    : folder_(std::move(folder)) {
  struct stat info = {};
  const auto text = base::ReadFile(objects);
  if (!text.ok() || ::stat(objects.c_str(), &info) != 0) return;
  written_ = absl::TimeFromTimespec(info.st_mtim);
  entries_ = ManifestEntriesIn(*text);
}

std::optional<ManifestEntry> FormerFetch::Find(const StoredObject& object, bool is_settled) const {
  const auto found = entries_.find(object.path);
  if (found == entries_.end() || !IsOf(found->second, object, is_settled)) return std::nullopt;
  return found->second;
}

bool FormerFetch::HasLike(const StoredObject& object) const {
  const auto found = entries_.find(object.path);
  return found != entries_.end() && found->second.bytes == object.bytes;
}

absl::StatusOr<bool> FormerFetch::LinkTo(const StoredObject& object,
                                         const std::filesystem::path& folder,
                                         const std::filesystem::path& target) const {
  const std::filesystem::path source = folder_ / object.path;
  struct stat info = {};
  if (::lstat(source.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != object.bytes || absl::TimeFromTimespec(info.st_mtim) > written_) {
    return false;
  }
  return LinkWhole(folder, object, source, target);
}

}  // namespace tutti::storage
