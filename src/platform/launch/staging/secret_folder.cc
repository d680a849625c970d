#include "platform/launch/staging/secret_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/node/private_name.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kMemory[] = "/dev/shm";
constexpr char kGiven[] = ".given";  // no variable has such a name
constexpr uint64_t kLargestValue = 1 << 20;

std::string Prefix() { return absl::StrCat("tutti-secrets-", ::geteuid(), "-"); }

absl::Status CheckMemory() {
  struct statfs info = {};
  if (::statfs(kMemory, &info) == 0 && info.f_type == TMPFS_MAGIC) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      kMemory, " of this node is not in memory, and files of secrets lie nowhere else: mount a ",
      "tmpfs there"));
}

absl::StatusOr<base::UniqueFd> Hold(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::Open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0 || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return base::ErrnoStatus(folder.native());
  }
  if (info.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(folder.native(), " is another user's"));
  }
  return fd;
}

// Their launchers were killed, and none has followed. One that is being made has another name.
void RemoveThoseNobodyHolds() {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kMemory, error)) {
    if (absl::StartsWith(entry.path().filename().native(), Prefix())) found.push_back(entry.path());
  }
  for (const fs::path& folder : found) {
    if (Hold(folder).ok()) base::RemoveTree(folder).IgnoreError();
  }
}

}  // namespace

fs::path SecretFolder::PathOf(const spec::LaunchPlan& plan) {
  return fs::path(kMemory) / absl::StrCat(Prefix(), PrivateName(plan, plan.directory));
}

absl::Status SecretFolder::Remove(const spec::LaunchPlan& plan) {
  return base::RemoveTree(PathOf(plan));
}

absl::Status SecretFolder::RemoveFiles(const spec::LaunchPlan& plan) {
  absl::Status status;
  for (const auto& [name, secret] : plan.secret_files) {
    status.Update(base::RemoveTree(PathOf(plan) / name));
  }
  for (const auto& [name, secret] : plan.secret_variables) {
    status.Update(base::RemoveTree(PathOf(plan) / name));
  }
  return status;
}

absl::Status SecretFolder::Keep(const SecretValues& values) const {
  const fs::path folder = path_ / kGiven;
  if (::mkdir(folder.c_str(), 0700) != 0) return base::ErrnoStatus(folder.native());
  for (const auto& [secret, value] : values) {
    TUTTI_RETURN_IF_ERROR(AddFile(absl::StrCat(kGiven, "/", secret), value).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<SecretValues> SecretFolder::Given(const spec::LaunchPlan& plan) {
  const fs::path folder = PathOf(plan) / kGiven;
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0) return base::ErrnoStatus(folder.native());
  if (info.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(folder.native(), " is another user's"));
  }
  SecretValues values;
  for (const auto* given : {&plan.secret_variables, &plan.secret_files}) {
    for (const auto& [name, secret] : *given) {
      TUTTI_ASSIGN_OR_RETURN(values[secret], base::ReadFile(folder / secret, kLargestValue));
    }
  }
  return values;
}

absl::StatusOr<SecretFolder> SecretFolder::Make(const spec::LaunchPlan& plan) {
  TUTTI_RETURN_IF_ERROR(CheckMemory());
  RemoveThoseNobodyHolds();
  // Held before it has the name by which others find it.
  std::string fresh = absl::StrCat(kMemory, "/tutti-new-secrets-", ::geteuid(), "-XXXXXX");
  if (::mkdtemp(fresh.data()) == nullptr) return base::ErrnoStatus(fresh);
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd held, Hold(fresh));
  const fs::path path = PathOf(plan);
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(path));
  if (::rename(fresh.c_str(), path.c_str()) != 0) return base::ErrnoStatus(path.native());
  return SecretFolder(path, std::move(held));
}

absl::StatusOr<std::string> SecretFolder::AddFile(absl::string_view name,
                                                  absl::string_view value) const {
  const fs::path file = path_ / std::string(name);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400));
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), value, file.native()));
  return file.native();
}

}  // namespace tutti::launch
