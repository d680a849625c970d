#include "platform/client/models/local_model.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<LocalModelFile> ReadOne(const fs::path& file, std::string path) {
  if (base::BoundedUtf8(path) != path) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of ", base::BoundedUtf8(path), " is not UTF-8: rename it"));
  }
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  if (error) return base::ErrnoStatus(file.string(), error.value());
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest hash, base::Sha256OfFile(file));
  return LocalModelFile{std::move(path), file, base::Hex(hash), bytes};
}

// Returns the files below a folder.
absl::StatusOr<std::vector<fs::path>> FilesBelow(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      files.push_back(entry->path());
    } else if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) {
      return absl::InvalidArgumentError(
          absl::StrCat(entry->path().string(), " is neither a file nor a folder: a model has ",
                       "these alone, and links to files"));
    }
  }
  if (error) return base::ErrnoStatus(folder.string(), error.value());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<LocalModel> ReadLocalModel(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path.string(), " does not exist"));
  }
  LocalModel model{.is_file = fs::is_regular_file(status)};
  std::vector<fs::path> files = {path};
  if (!model.is_file) {
    if (!fs::is_directory(status)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " is neither a file nor a folder"));
    }
    TUTTI_ASSIGN_OR_RETURN(files, FilesBelow(path));
  }
  for (const fs::path& file : files) {
    const fs::path name = model.is_file ? path.filename() : file.lexically_relative(path);
    TUTTI_ASSIGN_OR_RETURN(LocalModelFile one, ReadOne(file, name.string()));
    model.bytes += one.bytes;
    model.files.push_back(std::move(one));
  }
  if (!model.files.empty()) return model;
  return absl::InvalidArgumentError(absl::StrCat(path.string(), " has no files"));
}

absl::Status SendModel(ServiceClient& service, const LocalModel& model,
                       const std::function<void(const LocalModelFile& file)>& sent) {
  std::set<std::string> known;
  for (const LocalModelFile& file : model.files) {
    if (!known.insert(file.sha256).second) continue;
    sent(file);
    TUTTI_ASSIGN_OR_RETURN(const bool is_there, service.HasModelFile(file.sha256));
    if (is_there) continue;
    TUTTI_RETURN_IF_ERROR(
        base::Annotate(service.PutModelFile(file.sha256, file.file), file.file.string()));
  }
  return absl::OkStatus();
}

}  // namespace tutti::client
