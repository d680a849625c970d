#include "platform/launch/staging/unpack.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/code/code_archive.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

using code::CodeArchive;
using code::CodeEntry;

class Unpacking {
 public:
  Unpacking(CodeArchive* archive, fs::path folder)
      : archive_(archive), folder_(std::move(folder)) {}

  absl::Status Run() {
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(const std::optional<CodeEntry> entry, archive_->Next());
      if (!entry) return MakeLinks();
      TUTTI_RETURN_IF_ERROR(Take(*entry));
    }
  }

 private:
  absl::Status Take(const CodeEntry& entry) {
    switch (entry.kind) {
      case CodeEntry::Kind::kFolder:
        return base::MakeDirectories(folder_ / entry.name);
      case CodeEntry::Kind::kFile:
        return WriteFile(entry);
      case CodeEntry::Kind::kLink:
        links_.emplace_back(entry.name, entry.target);
        return absl::OkStatus();
      case CodeEntry::Kind::kHardLink:
        return Refuse(entry.name, "a hard link");
      case CodeEntry::Kind::kOther:
        break;
    }
    return Refuse(entry.name, "neither file, folder nor link");
  }

  static absl::Status Refuse(absl::string_view name, absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("archive entry \"", name, "\" is ", why));
  }

  absl::Status WriteFile(const CodeEntry& entry) {
    const fs::path path = folder_ / entry.name;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                           base::Open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                                      entry.executable ? 0755 : 0644));
    return archive_->WriteTo(fd.get(), path.string());
  }

  absl::Status MakeLinks() {
    for (const auto& [name, target] : links_) {
      if (HasLinkAbove(name)) return Refuse(name, "below a link");
      if (!LeadsInsideByName(name, target)) return Refuse(name, "a link that leaves the folder");
      const fs::path path = folder_ / name;
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
      if (::symlink(target.c_str(), path.c_str()) != 0) {
        return base::ErrnoStatus(absl::StrCat("link ", path.string()));
      }
    }
    // A name that looks harmless may lead outside through other links: so look where it ends.
    for (const auto& [name, target] : links_) {
      TUTTI_ASSIGN_OR_RETURN(const bool inside, IsInside(folder_ / name));
      if (!inside) return Refuse(name, "a link that leaves the folder");
    }
    return absl::OkStatus();
  }

  bool HasLinkAbove(const fs::path& name) const {
    for (fs::path above = name.parent_path(); !above.empty(); above = above.parent_path()) {
      std::error_code error;
      if (fs::is_symlink(fs::symlink_status(folder_ / above, error))) return true;
    }
    return false;
  }

  static bool LeadsInsideByName(const fs::path& name, const fs::path& target) {
    if (target.is_absolute()) return false;
    const fs::path end = (name.parent_path() / target).lexically_normal();
    return end.empty() || *end.begin() != "..";
  }

  absl::StatusOr<bool> IsInside(const fs::path& path) const {
    std::error_code error;
    const fs::path root = fs::canonical(folder_, error);
    if (error) return base::ErrnoStatus(folder_.string(), error.value());
    const fs::path real = fs::weakly_canonical(path, error);
    if (error) return base::ErrnoStatus(path.string(), error.value());
    return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  }

  CodeArchive* const archive_;
  const fs::path folder_;
  std::vector<std::pair<std::string, std::string>> links_;  // name, target
};

}  // namespace

absl::Status UnpackArchive(const fs::path& archive, const fs::path& folder) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_ASSIGN_OR_RETURN(const auto opened, CodeArchive::Open(archive));
  const absl::Status status = Unpacking(opened.get(), folder).Run();
  if (!status.ok()) {
    base::RemoveTree(folder).IgnoreError();
    base::MakeDirectories(folder).IgnoreError();
  }
  return status;
}

}  // namespace tutti::launch
