#include "platform/client/results/download.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// The service writes this for bytes that are not UTF-8.
constexpr absl::string_view kNoUtf8 = "\xEF\xBF\xBD";

FetchFile FilesOfJob(ServiceClient& service, const std::string& job) {
  return [&service, &job](const std::string& path, http::ChunkCallback on_chunk) {
    return service.File(job, path, std::move(on_chunk));
  };
}

absl::Status Download(const FetchFile& fetch, const FileView& file, const fs::path& target,
                      const std::function<void(uint64_t bytes)>& progress) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(target.parent_path()));
  // Not the file's name with something behind it, which may be longer than a name can be.
  const fs::path temporary = target.parent_path() / absl::StrCat(".tutti-part-", ::getpid());
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };

  uint64_t bytes = 0;
  TUTTI_RETURN_IF_ERROR(fetch(file.path, [&](absl::string_view chunk) {
    bytes += chunk.size();
    if (bytes > file.bytes && !file.changes)
      return absl::DataLossError("more came than the service had announced");
    progress(bytes);
    return base::WriteAll(fd.get(), chunk, target.string());
  }));
  if (bytes != file.bytes && !file.changes) {
    return absl::DataLossError(absl::StrCat(bytes, " bytes came instead of ", file.bytes));
  }
  if (::fsync(fd.get()) != 0) return base::ErrnoStatus(absl::StrCat("fsync ", target.string()));
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    return base::ErrnoStatus(absl::StrCat("rename to ", target.string()));
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

// Returns one status that names the files, the first ones if they are many.
absl::Status AllOf(const std::vector<absl::Status>& failures) {
  constexpr size_t kMostNamed = 5;
  if (failures.empty()) return absl::OkStatus();
  std::vector<absl::string_view> named;
  for (size_t i = 0; i < std::min(failures.size(), kMostNamed); ++i) {
    named.push_back(failures[i].message());
  }
  const size_t more = failures.size() - named.size();
  return absl::Status(failures.front().code(),
                      absl::StrCat(absl::StrJoin(named, "; "),
                                   more > 0 ? absl::StrCat("; and ", more, " more files") : ""));
}

}  // namespace

bool IsOfOneFile(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status);
}

absl::Status DownloadFile(ServiceClient& service, const std::string& job, const FileView& file,
                          const fs::path& target,
                          const std::function<void(uint64_t bytes)>& progress) {
  return Download(FilesOfJob(service, job), file, target, progress);
}

absl::StatusOr<fs::path> DestinationOf(const fs::path& directory, absl::string_view path) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("the service names a file \"", Printable(path), "\": refused"));
  };
  if (path.empty() || path.find('\0') != absl::string_view::npos) return refuse();
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return refuse();
  }
  return directory / std::string(path);
}

absl::Status DownloadFiles(ServiceClient& service, const std::string& job,
                           const std::vector<FileView>& files, const fs::path& directory,
                           const DownloadProgress& progress) {
  return DownloadFiles(FilesOfJob(service, job), files, directory, progress);
}

absl::Status DownloadFiles(const FetchFile& fetch, const std::vector<FileView>& files,
                           const fs::path& directory, const DownloadProgress& progress) {
  std::vector<fs::path> targets;  // all are checked before the first is written
  for (const FileView& file : files) {
    TUTTI_ASSIGN_OR_RETURN(fs::path target, DestinationOf(directory, file.path));
    targets.push_back(std::move(target));
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(directory));
  std::vector<absl::Status> failures;
  for (size_t i = 0; i < files.size(); ++i) {
    const FileView& file = files[i];
    absl::Status status =
        Download(fetch, file, targets[i], [&](uint64_t bytes) { progress(file, bytes); });
    if (absl::IsNotFound(status) && file.changes) continue;
    if (absl::IsNotFound(status) && absl::StrContains(files[i].path, kNoUtf8)) {
      status = absl::NotFoundError("its name is not UTF-8, so it lies only in the service's home");
    }
    status = base::Annotate(status, Printable(files[i].path));
    if (!status.ok() && !IsOfOneFile(status)) return status;
    if (!status.ok()) failures.push_back(std::move(status));
  }
  return AllOf(failures);
}

}  // namespace tutti::client
