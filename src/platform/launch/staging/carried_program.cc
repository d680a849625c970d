#include "platform/launch/staging/carried_program.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/text/utf8.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigestDigits = 64;
constexpr absl::Duration kUnused = absl::Hours(24 * 30);
constexpr absl::Duration kPatienceWithTar = absl::Minutes(10);

bool IsDigest(absl::string_view text) {
  return text.size() == kDigestDigits &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

bool IsUnused(const fs::path& folder) {
  struct stat info = {};
  return ::stat(folder.c_str(), &info) == 0 &&
         absl::Now() - absl::TimeFromTimespec(info.st_mtim) > kUnused;
}

// A program that cannot be removed stays until the next version comes.
void RemoveUnused(const fs::path& programs) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator entry(programs, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsDigest(entry->path().filename().native())) folders.push_back(entry->path());
  }
  for (const fs::path& folder : folders) {
    const auto lock = base::Open(folder.native() + ".lock", O_RDWR | O_CREAT);
    if (!lock.ok() || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0 || !IsUnused(folder)) continue;
    spdlog::info("{} is removed: no job has taken it for 30 days", folder.native());
    const fs::path gone = folder.native() + ".part";  // what is left of it is taken for that
    fs::rename(folder, gone, error);
    if (!error) base::RemoveTree(gone).IgnoreError();
  }
}

// So that after a power failure what has its name is whole.
absl::Status SyncDiskOf(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(folder, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("sync ", folder.native()));
}

// As the batch script does with the launcher: the service has made the archive, by its hash.
absl::Status Unpack(const fs::path& archive, const fs::path& folder,
                    const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  base::ChildOptions options;
  options.arguments = {"tar", "-xzf", archive.native(), "-C", folder.native()};
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  TUTTI_ASSIGN_OR_RETURN(
      const base::CommandResult result,
      base::RunCommand(std::move(options), "", base::Deadline::After(kPatienceWithTar),
                       base::kMostCommandOutput, &cancelled));
  if (result.exit.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("what came cannot be unpacked: ",
                   base::BoundedUtf8(absl::StripAsciiWhitespace(result.err), 300)));
}

absl::Status Make(const std::string& name, const fs::path& folder,
                  const std::function<absl::Status(const fs::path&)>& fetch,
                  const std::atomic<bool>& cancelled) {
  const fs::path archive = folder.native() + ".tar.gz", part = folder.native() + ".part";
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(part));
  TUTTI_RETURN_IF_ERROR(fetch(archive));
  const absl::Status unpacked = Unpack(archive, part, cancelled);
  ::unlink(archive.c_str());
  TUTTI_RETURN_IF_ERROR(unpacked);
  if (::access((part / name).c_str(), X_OK) != 0) {
    return absl::DataLossError(absl::StrCat("there is no program ", name, " in what came"));
  }
  TUTTI_RETURN_IF_ERROR(SyncDiskOf(part));
  if (::rename(part.c_str(), folder.c_str()) == 0) return base::SyncDirectory(folder.parent_path());
  return base::ErrnoStatus(absl::StrCat("rename ", part.native()));
}

}  // namespace

absl::StatusOr<fs::path> CarriedProgram(const std::string& name, const std::string& snapshot,
                                        const fs::path& programs,
                                        const std::function<absl::Status(const fs::path&)>& fetch,
                                        const std::atomic<bool>& cancelled) {
  const std::string hex(absl::StripPrefix(snapshot, "sha256:"));
  if (!IsDigest(hex)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", snapshot, "\" is no snapshot"));
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(programs));
  const fs::path folder = programs / hex;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         base::LockFile(folder.native() + ".lock", cancelled));
  base::Touch(folder);
  if (::access((folder / name).c_str(), X_OK) == 0) return folder / name;
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder));
  TUTTI_RETURN_IF_ERROR(base::Annotate(Make(name, folder, fetch, cancelled), name));
  RemoveUnused(programs);
  return folder / name;
}

}  // namespace tutti::launch
