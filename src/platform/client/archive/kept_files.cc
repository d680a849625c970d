#include "platform/client/archive/kept_files.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/archive/snapshot.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// Returns whether the file is a link to a folder, or to nothing; a link to a file counts as the
// file.
bool IsKeptLink(const fs::path& file) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(file, error)) && !fs::is_regular_file(file, error);
}

// Returns what the file is, and where it leads or what it holds.
absl::StatusOr<std::string> ContentOf(const fs::path& file) {
  std::error_code error;
  if (IsKeptLink(file)) return absl::StrCat("link ", fs::read_symlink(file, error).string());
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) return "folder";
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(file));
  const bool runs = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
  return absl::StrCat(runs ? "program " : "file ", base::Hex(digest));
}

absl::Status Copy(const fs::path& file, const fs::path& to) {
  std::error_code error;
  const bool is_folder = !IsKeptLink(file) && fs::is_directory(file, error);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(is_folder ? to : to.parent_path()));
  if (is_folder) return absl::OkStatus();
  if (IsKeptLink(file)) {
    fs::copy_symlink(file, to, error);
  } else {
    fs::copy_file(file, to, error);
  }
  return error ? base::ErrnoStatus(absl::StrCat("copy ", file.string()), error.value())
               : absl::OkStatus();
}

}  // namespace

absl::StatusOr<FilesToKeep> FindFilesToKeep(const std::vector<fs::path>& parts,
                                            const fs::path& home,
                                            const std::vector<fs::path>& builds) {
  const fs::path own = fs::absolute(home).lexically_normal();
  std::set<fs::path> files;
  const auto add = [&](const fs::path& part, const auto& files_of) -> absl::Status {
    const fs::path path = part.lexically_normal();
    std::error_code error;
    if (IsBelow(path, own) || !fs::exists(path, error)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_of(path));
    const bool is_folder = fs::is_directory(path, error);
    if (is_folder) files.insert(path);
    for (const std::string& name : names) {
      const fs::path file = is_folder ? path / name : path;
      if (!IsBelow(file, own)) files.insert(file);
    }
    return absl::OkStatus();
  };
  for (const fs::path& part : parts) TUTTI_RETURN_IF_ERROR(add(part, FilesOfCode));
  for (const fs::path& build : builds) TUTTI_RETURN_IF_ERROR(add(build, FilesOfBuild));
  FilesToKeep kept{.files = {files.begin(), files.end()}, .digest = ""};
  const fs::path beside = parts.front().lexically_normal().parent_path();
  std::map<std::string, std::string> contents;  // by place, so that the order is of the places
  for (const fs::path& file : kept.files) {
    TUTTI_ASSIGN_OR_RETURN(contents[file.lexically_relative(beside).string()], ContentOf(file));
  }
  base::Sha256 hash;
  for (const auto& [place, content] : contents)
    hash.Update(absl::StrCat(place, "\n", content, "\n"));
  kept.digest = absl::StrCat("sha256:", base::Hex(hash.Finish()));
  return kept;
}

fs::path KeptPath(const fs::path& folder, const fs::path& file) {
  return folder / file.lexically_normal().relative_path();
}

absl::Status KeepFiles(const FilesToKeep& kept, const fs::path& folder) {
  // No version's name begins with a dot.
  const fs::path partial =
      folder.parent_path() / absl::StrCat(".", folder.filename().string(), ".partial");
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(partial));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(partial));
  for (const fs::path& file : kept.files) {
    const absl::Status copied = Copy(file, KeptPath(partial, file));
    if (copied.ok()) continue;
    base::RemoveTree(partial).IgnoreError();
    return copied;
  }
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder));
  std::error_code error;
  fs::rename(partial, folder, error);
  return error ? base::ErrnoStatus(absl::StrCat("rename ", partial.string()), error.value())
               : absl::OkStatus();
}

}  // namespace tutti::client
