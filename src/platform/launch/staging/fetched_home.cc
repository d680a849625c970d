#include "platform/launch/staging/fetched_home.h"

#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = ".tutti-objects";  // of the program, in the folder that it fills
constexpr int kLooksSeldom = 100;               // times as long as a look takes
constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;

absl::Status TakeWriteFrom(const fs::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return base::ErrnoStatus(path.native());
  if (S_ISLNK(info.st_mode) || (info.st_mode & kAnyWrite) == 0) return absl::OkStatus();
  if (::chmod(path.c_str(), info.st_mode & ~kAnyWrite & 07777) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("chmod ", path.native()));
}

// Calls `look` with the folder and all that lies below it, until it returns an error.
template <typename Look>
absl::Status ForEachBelow(const fs::path& folder, const Look& look) {
  TUTTI_RETURN_IF_ERROR(look(folder));
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    TUTTI_RETURN_IF_ERROR(look(entry->path()));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", folder.native()), error.value());
  return absl::OkStatus();
}

std::optional<absl::Time> ChangedAt(const fs::path& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return absl::TimeFromTimespec(info.st_mtim);
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("rename ", from.native()));
}

}  // namespace

absl::StatusOr<bool> FetchedHome::IsThere() const {
  std::error_code error;
  if (fs::exists(folder_ / "whole", error)) TUTTI_RETURN_IF_ERROR(FinishKeeping());
  return fs::exists(data(), error);
}

absl::Status FetchedHome::Keep() const {
  TUTTI_RETURN_IF_ERROR(Rename(folder_ / "part", folder_ / "whole"));
  return FinishKeeping();
}

// Folders become read-only when nothing has to be renamed in them any more.
absl::Status FetchedHome::FinishKeeping() const {
  const fs::path whole = folder_ / "whole";
  const fs::path manifest = (is_file_ ? whole : whole / name_) / kManifest;
  std::error_code error;
  if (fs::exists(manifest, error)) TUTTI_RETURN_IF_ERROR(Rename(manifest, objects()));
  TUTTI_RETURN_IF_ERROR(ForEachBelow(whole, TakeWriteFrom));
  if (!fs::exists(objects(), error)) TUTTI_RETURN_IF_ERROR(base::ReplaceFile(objects(), ""));
  base::Touch(objects());
  return Rename(whole, folder_ / "content");
}

// By the clock of the disk's server, which the folder has the time of, too.
bool FetchedHome::WasLookedAt() const {
  const auto text = base::ReadFile(folder_ / "looked", 100);
  const auto then = ChangedAt(folder_ / "looked"), now = ChangedAt(folder_);
  double seconds = 0;
  return text.ok() && then && now && absl::SimpleAtod(*text, &seconds) && *then <= *now &&
         *now - *then < kLooksSeldom * absl::Seconds(seconds);
}

absl::StatusOr<bool> FetchedHome::IsDamaged(const std::atomic<bool>& cancelled) const {
  std::error_code error;
  if (fs::exists(folder_ / "damaged", error)) return true;
  if (WasLookedAt()) return false;
  const absl::Duration begin = base::SteadyNow();
  const auto kept = ChangedAt(objects());
  bool is_damaged = !kept.has_value();
  TUTTI_RETURN_IF_ERROR(ForEachBelow(folder_ / "content", [&](const fs::path& path) {
    if (cancelled) return absl::CancelledError("stopped while inputs were looked at");
    const auto changed = ChangedAt(path);
    is_damaged = is_damaged || !changed.has_value() || *changed > *kept;
    return absl::OkStatus();
  }));
  const double seconds = absl::ToDoubleSeconds(base::SteadyNow() - begin);
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(folder_ / (is_damaged ? "damaged" : "looked"),
                                          absl::StrCat(seconds, "\n")));
  return is_damaged;
}

}  // namespace tutti::launch
