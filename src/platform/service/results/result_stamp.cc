#include "platform/service/results/result_stamp.h"

#include <sys/stat.h>

#include <set>
#include <string>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

fs::path StampOf(const fs::path& job_folder) { return job_folder / "results.stamp"; }

// Hashes the names, sizes and modification times of everything that is not a folder. The files are
// not read: that would take as long as the results are large, and writing to a file changes its
// time.
absl::StatusOr<std::string> StateOf(const fs::path& outputs) {
  std::set<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(outputs, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsArriving(entry->path().filename().native())) {
      entry.disable_recursion_pending();
      continue;
    }
    struct stat status = {};
    if (::lstat(entry->path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    files.insert(absl::StrCat(entry->path().lexically_relative(outputs).native(), "\n",
                              status.st_size, " ", status.st_mtim.tv_sec, ".",
                              status.st_mtim.tv_nsec, "\n"));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(absl::StrCat("read ", outputs.string()), error.value());
  }
  base::Sha256 hash;
  for (const std::string& file : files) hash.Update(file);
  return base::Hex(hash.Finish());
}

}  // namespace

absl::Status StampResults(const fs::path& job_folder) {
  std::error_code error;
  if (!fs::exists(job_folder, error)) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const std::string state, StateOf(job_folder / "outputs"));
  return base::ReplaceFile(StampOf(job_folder), state);
}

bool ResultsAreAsStamped(const fs::path& job_folder) {
  const auto stamped = base::ReadFile(StampOf(job_folder));
  if (!stamped.ok()) return false;
  const auto now = StateOf(job_folder / "outputs");
  return now.ok() && *now == *stamped;
}

}  // namespace tutti::service
