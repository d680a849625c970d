#include "platform/launch/staging/copy.h"

#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {

namespace fs = std::filesystem;

absl::Status Copy(const fs::path& from, const fs::path& to, const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("stopped while inputs were copied");
  std::error_code error;
  if (!fs::is_directory(from, error)) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error) return base::ErrnoStatus(absl::StrCat("copy ", from.string()), error.value());
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    TUTTI_RETURN_IF_ERROR(Copy(entry->path(), to / entry->path().filename(), cancelled));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  return absl::OkStatus();
}

absl::Status CopyAsItIs(const fs::path& from, const fs::path& to,
                        const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("stopped while outputs were copied");
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    std::error_code failed;
    const fs::file_status status = entry->symlink_status(failed);
    if (fs::is_directory(status)) {
      TUTTI_RETURN_IF_ERROR(CopyAsItIs(entry->path(), target, cancelled));
    } else if (fs::is_symlink(status)) {
      fs::copy_symlink(entry->path(), target, failed);
    } else if (fs::is_regular_file(status)) {
      fs::copy_file(entry->path(), target, fs::copy_options::overwrite_existing, failed);
    }
    if (failed && failed != std::errc::no_such_file_or_directory) {
      return base::ErrnoStatus(absl::StrCat("copy ", entry->path().string()), failed.value());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  }
  return absl::OkStatus();
}

}  // namespace tutti::launch
