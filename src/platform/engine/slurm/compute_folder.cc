#include "platform/engine/slurm/compute_folder.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

// One that was moved is the same by its number, one that was restored or mounted anew by its path.
struct FolderIdentity {
  std::string path, number;
  bool IsAnothers(const FolderIdentity& other) const {
    return path != other.path && number != other.number;
  }
};

absl::StatusOr<FolderIdentity> IdentityOf(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::canonical(folder, error);
  struct stat info = {};
  if (error) return base::ErrnoStatus(folder.native(), error.value());
  if (::stat(path.c_str(), &info) != 0) return base::ErrnoStatus(path.native());
  return FolderIdentity{path.native(), absl::StrCat(info.st_ino)};
}

// Where the folder was when its id was last used; where it is if nothing says that.
absl::StatusOr<FolderIdentity> FormerIdentity(const fs::path& folder, const FolderIdentity& now) {
  const auto text = base::ReadFile(folder / "place", 1 << 16);
  if (absl::IsNotFound(text.status())) return now;
  TUTTI_RETURN_IF_ERROR(text.status());
  const std::pair<std::string, std::string> lines = absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  return FolderIdentity{lines.second, lines.first};
}

// Returns whether an engine was killed while it made that folder: there are plans of an allocation
// of that name, and not yet the script without which nothing of it is submitted.
bool IsHalfMade(const fs::path& folder) {
  for (const char* plan : {"plan.json", "0/plan.json"}) {
    const auto text = base::ReadFile(folder / plan, 64 << 20);
    const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
    const auto id = json.is_object() ? json.find("allocation_id") : json.end();
    if (id != json.end() && *id == folder.filename().native()) return true;
  }
  return false;
}

}  // namespace

absl::Status MakeComputeFolder(fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "/shared/me/"
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(fs::absolute(folder).parent_path()));
  struct stat info = {};
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) ||
      ::stat(folder.c_str(), &info) != 0) {
    return base::ErrnoStatus(absl::StrCat("mkdir ", folder.native()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("others may write to ", folder.native(),
                     ", so put a job there that runs as you: chmod go-w ", folder.native()));
  }
  if ((info.st_mode & S_IRWXO) != 0) {
    spdlog::warn("everybody may look into {}, where jobs' logs and results lie: chmod o= {}",
                 folder.native(), folder.native());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> IdOfComputeFolder(const fs::path& folder, bool has_jobs) {
  TUTTI_ASSIGN_OR_RETURN(const FolderIdentity now, IdentityOf(folder));
  TUTTI_ASSIGN_OR_RETURN(const FolderIdentity former, FormerIdentity(folder, now));
  const bool is_copy = now.IsAnothers(former);
  if (is_copy && has_jobs) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.native(), " is a copy of ", former.path,
        ", with jobs that are that one's: give this service another folder, or, if the other is "
        "used no more, rm ",
        (folder / "place").native()));
  }
  auto id = base::ReadFile(folder / "id", 100);
  if (!id.ok() && !absl::IsNotFound(id.status())) return id.status();
  if (is_copy || !id.ok()) {
    id = base::RandomHex(4);
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder / "id", *id));
  }
  // One that is right is left as it is: on a full disk too a service comes back to its compute.
  const std::string place = absl::StrCat(now.number, "\n", now.path);
  if (base::ReadFile(folder / "place", 1 << 16).value_or("") != place) {
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder / "place", place));
  }
  return std::string(absl::StripAsciiWhitespace(*id));
}

absl::StatusOr<std::map<std::string, SlurmAllocation>> FindAllocations(
    const fs::path& folder, absl::Duration settling, std::vector<fs::path>& released) {
  std::map<std::string, SlurmAllocation> known;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, kReleased)) released.push_back(entry->path());
    if (name.front() == '.') continue;
    auto found = SlurmAllocation::Find(entry->path());
    if (absl::IsNotFound(found.status())) {
      std::error_code stays;
      const fs::path away = folder / absl::StrCat(kReleased, name);
      if (IsHalfMade(entry->path())) fs::rename(entry->path(), away, stays);
      if (!stays && fs::exists(away, stays)) released.push_back(away);
      continue;
    }
    TUTTI_RETURN_IF_ERROR(found.status());
    found->settles = base::SteadyNow() + settling;
    known.emplace(name, *std::move(found));
  }
  if (error) return base::ErrnoStatus(folder.native(), error.value());
  return known;
}

}  // namespace tutti::engine
