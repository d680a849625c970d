#include "platform/launch/staging/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/node/private_name.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestScratch = 64;

// Only the link's owner can remove it from /tmp, or put another one in its place.
bool IsOwnLink(const fs::path& link, const fs::path& target) {
  struct stat info = {};
  if (::lstat(link.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return false;
  std::error_code error;
  return info.st_uid == ::geteuid() && fs::read_symlink(link, error) == target;
}

absl::Status LinkShortScratch(const spec::LaunchPlan& plan) {
  const fs::path link = ShortScratch(plan), scratch = NodeFolders(plan.directory).scratch();
  // One that a launcher before left stays: once removed, another user could make its name.
  if (link == scratch || IsOwnLink(link, scratch)) return absl::OkStatus();
  std::error_code error;
  fs::create_symlink(scratch, link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

}  // namespace

fs::path ShortScratch(const spec::LaunchPlan& plan) {
  const std::string path = NodeFolders(plan.directory).scratch().string();
  if (path.size() <= kLongestScratch) return path;
  return absl::StrCat("/tmp/tutti-", PrivateName(plan, path));
}

void RemoveShortScratch(const spec::LaunchPlan& plan) {
  std::error_code error;
  const fs::path scratch = NodeFolders(plan.directory).scratch();
  if (const fs::path link = ShortScratch(plan); link != scratch) fs::remove(link, error);
}

absl::Status MakeEmptyFolders(const NodeFolders& folders) {
  for (const fs::path& folder : {folders.work_logs(), folders.work_outputs(), folders.inputs(),
                                 folders.outputs(), folders.scratch()}) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  }
  return absl::OkStatus();
}

absl::Status MakeFolders(const spec::LaunchPlan& plan) {
  const NodeFolders folders(plan.directory);
  TUTTI_RETURN_IF_ERROR(MakeEmptyFolders(folders));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd host_file,
                         base::Open(folders.host_file(), O_WRONLY | O_CREAT));
  TUTTI_RETURN_IF_ERROR(base::Shorten(host_file.get(), 0, folders.host_file().string()));
  TUTTI_RETURN_IF_ERROR(
      base::WriteAll(host_file.get(), HostFile(plan), folders.host_file().string()));
  return LinkShortScratch(plan);
}

}  // namespace tutti::launch
