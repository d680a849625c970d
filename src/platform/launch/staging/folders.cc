#include "platform/launch/staging/folders.h"

#include <fcntl.h>

#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/launch/environment/process_environment.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestScratch = 64;

absl::Status LinkShortScratch(const NodeFolders& folders) {
  const fs::path link = ShortScratch(folders);
  if (link == folders.scratch()) return absl::OkStatus();
  std::error_code error;
  fs::remove(link, error);
  fs::create_symlink(folders.scratch(), link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

}  // namespace

fs::path ShortScratch(const NodeFolders& folders) {
  const std::string path = folders.scratch().string();
  if (path.size() <= kLongestScratch) return path;
  return absl::StrCat("/tmp/tutti-", base::Hex(base::Sha256Of(path)).substr(0, 16));
}

void RemoveShortScratch(const NodeFolders& folders) {
  std::error_code error;
  if (const fs::path link = ShortScratch(folders); link != folders.scratch()) {
    fs::remove(link, error);
  }
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
  return LinkShortScratch(folders);
}

}  // namespace tutti::launch
