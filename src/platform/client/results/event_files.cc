#include "platform/client/results/event_files.h"

#include <fcntl.h>

#include <system_error>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/results/download.h"
#include "platform/client/results/results_so_far.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPartOfName = "tfevents";

bool IsEventFile(const FileView& file) {
  const std::string name = fs::path(file.path).filename().string();
  return absl::StartsWith(file.path, "outputs/") && absl::StrContains(name, kPartOfName);
}

uint64_t SizeOf(const fs::path& file) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

// Adds what comes behind the bytes that are here; a file that is shorter now is another one.
absl::Status BringOne(ServiceClient& service, const std::string& job, const FileView& file,
                      const fs::path& target) {
  uint64_t here = SizeOf(target);
  if (here == file.bytes) return absl::OkStatus();
  if (here > file.bytes) here = 0;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(target.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(
      const base::UniqueFd fd,
      base::Open(target, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | (here == 0 ? O_TRUNC : 0)));
  uint64_t come = 0;
  return service.File(job, file.path, [&](absl::string_view piece) {
    const uint64_t known = here > come ? std::min<uint64_t>(here - come, piece.size()) : 0;
    come += piece.size();
    return base::WriteAll(fd.get(), piece.substr(known), target.string());
  });
}

}  // namespace

absl::StatusOr<EventFiles> BringEventFiles(ServiceClient& service, const std::string& job,
                                           const fs::path& folder, absl::Duration wait) {
  TUTTI_ASSIGN_OR_RETURN(const std::string shown, service.Job(job));
  TUTTI_ASSIGN_OR_RETURN(const JobView view, Parse<JobView>(shown));
  EventFiles brought{.has_ended = view.ended_already()};
  brought.note = AskForResultsSoFar(service, view, std::string(kPartOfName), wait);
  TUTTI_ASSIGN_OR_RETURN(const std::string listed, service.Files(job));
  TUTTI_ASSIGN_OR_RETURN(const FilesView there, Parse<FilesView>(listed));
  for (const FileView& file : there.files) {
    if (!IsEventFile(file)) continue;
    TUTTI_ASSIGN_OR_RETURN(const fs::path target, DestinationOf(folder, file.path));
    const absl::Status status = BringOne(service, job, file, target);
    if (absl::IsNotFound(status)) continue;  // it was removed meanwhile
    TUTTI_RETURN_IF_ERROR(base::Annotate(status, Printable(file.path)));
    ++brought.files;
  }
  return brought;
}

}  // namespace tutti::client
