#include "platform/launch/staging/secret_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/node/private_name.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kKind[] = "secrets";
constexpr char kGiven[] = ".given";  // no variable has such a name
constexpr uint64_t kLargestValue = 1 << 20;

}  // namespace

fs::path SecretFolder::PathOf(const spec::LaunchPlan& plan) {
  return base::MemoryFolder::PathOf(kKind, PrivateName(plan, plan.directory));
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
  if (plan.tracks) status.Update(base::RemoveTree(PathOf(plan) / "MLFLOW_TRACKING_TOKEN"));
  return status;
}

absl::Status SecretFolder::Keep(const SecretValues& values) const {
  const fs::path folder = folder_.path() / kGiven;
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
  const auto token = base::ReadFile(folder / kTokenOfRun, kLargestValue);
  if (token.ok()) values[kTokenOfRun] = *token;
  return values;
}

absl::StatusOr<SecretFolder> SecretFolder::Make(const spec::LaunchPlan& plan) {
  TUTTI_ASSIGN_OR_RETURN(
      base::MemoryFolder folder,
      base::MemoryFolder::Make(kKind, PrivateName(plan, plan.directory), "files of secrets"));
  return SecretFolder(std::move(folder));
}

absl::StatusOr<std::string> SecretFolder::AddFile(absl::string_view name,
                                                  absl::string_view value) const {
  const fs::path file = folder_.path() / std::string(name);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0400));
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), value, file.native()));
  return file.native();
}

}  // namespace tutti::launch
