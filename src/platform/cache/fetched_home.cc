#include "platform/cache/fetched_home.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "platform/cache/cache_census.h"
#include "platform/storage/objects/object_manifest.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = ".tutti-objects";  // of the program, in the folder that it fills
constexpr char kDamaged[] = "damaged", kVerified[] = "verified", kExposed[] = "exposed";
constexpr size_t kLongestBootId = 100;
constexpr size_t kMostReaders = 8, kBlock = 1 << 20;           // bytes
constexpr int kLooksSeldom = 100;                              // times as long as a look takes
constexpr absl::Duration kClockTick = absl::Milliseconds(20);  // of files' times, at most
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

// Hexadecimal; "" if it cannot be read to its end, or `cancelled`.
std::string HashOf(const fs::path& path, const std::atomic<bool>& cancelled) {
  const auto file = base::Open(path, O_RDONLY | O_NOFOLLOW);
  if (!file.ok()) return "";
  base::Sha256 hash;
  std::vector<char> block(kBlock);
  while (!cancelled) {
    const ssize_t n = ::read(file->get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return "";
    if (n == 0) return base::Hex(hash.Finish());
    hash.Update({block.data(), static_cast<size_t>(n)});
  }
  return "";
}

// If the note cannot be written, as on a full disk, the next process finds out anew.
void NoteDown(const fs::path& file, const std::string& text) {
  const absl::Status noted = base::ReplaceFile(file, text);
  if (!noted.ok()) spdlog::warn("{}", noted.ToString());
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("rename ", from.native()));
}

}  // namespace

std::optional<FetchedHome> FetchedHome::In(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entry(folder / "content", error);
  if (error || entry == fs::directory_iterator()) return std::nullopt;
  return FetchedHome(folder, entry->path().filename(), entry->is_regular_file(error));
}

absl::StatusOr<bool> FetchedHome::IsThere() const {
  std::error_code error;
  if (fs::exists(folder_ / "whole", error)) TUTTI_RETURN_IF_ERROR(FinishKeeping());
  return fs::exists(data(), error);
}

absl::Status FetchedHome::Keep(bool is_verified) const {
  TUTTI_RETURN_IF_ERROR(Rename(folder_ / "part", folder_ / "whole"));
  TUTTI_RETURN_IF_ERROR(FinishKeeping());
  if (is_verified) NoteVerified();
  return absl::OkStatus();
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

// Compares times by the clock of the disk's server, which also sets the folder's time.
bool FetchedHome::WasLookedAt() const {
  const auto text = base::ReadFile(folder_ / "looked", 100);
  const auto then = ChangedAt(folder_ / "looked"), now = ChangedAt(folder_);
  double seconds = 0;
  if (!text.ok() || !then || !now || !absl::SimpleAtod(*text, &seconds)) return false;
  const absl::Duration took = absl::Seconds(seconds);
  const auto exposed = ChangedAt(folder_ / kExposed);
  if (exposed && *exposed >= *then - took - kClockTick) return false;  // it may have come too early
  return *then <= *now && *now - *then < kLooksSeldom * took;
}

void FetchedHome::NoteExposed() const { NoteDown(folder_ / kExposed, ""); }

bool FetchedHome::IsVerified() const {
  const auto boot = base::ReadFile(folder_ / kVerified, kLongestBootId);
  return boot.ok() && !boot->empty() && *boot == base::BootId();
}

// If that cannot be written, as on a full disk, the files are read once more.
void FetchedHome::NoteVerified() const {
  base::ReplaceFile(folder_ / kVerified, base::BootId()).IgnoreError();
}

// A single file may have another name than the object (fetch_place.h).
fs::path FetchedHome::FileOf(const std::string& path) const {
  return is_file_ ? data() : data() / path;
}

absl::StatusOr<std::optional<std::string>> FetchedHome::FirstDamaged(
    const std::atomic<bool>& cancelled) const {
  const auto text = base::ReadFile(objects());
  if (absl::IsNotFound(text.status())) return std::nullopt;
  TUTTI_RETURN_IF_ERROR(text.status());
  const auto noted = storage::ManifestEntriesIn(*text);
  const std::vector<std::pair<std::string, storage::ManifestEntry>> entries(noted.begin(),
                                                                            noted.end());
  absl::Mutex mutex;
  std::optional<std::string> damaged;
  base::ForEachAtOnce(entries.size(), kMostReaders, [&](size_t i) {
    const auto& [path, entry] = entries[i];
    if (entry.sha256.empty() || cancelled) return;
    const bool is_same = HashOf(FileOf(path), cancelled) == entry.sha256;
    absl::MutexLock lock(&mutex);
    if (!is_same && !cancelled && (!damaged || path < *damaged)) damaged = path;
  });
  if (cancelled) return absl::CancelledError("stopped while inputs were read");
  return damaged;
}

absl::StatusOr<bool> FetchedHome::WasWrittenTo(const std::atomic<bool>& cancelled) const {
  const auto kept = ChangedAt(objects());
  bool was_written_to = !kept.has_value();
  TUTTI_RETURN_IF_ERROR(ForEachBelow(folder_ / "content", [&](const fs::path& path) {
    if (cancelled) return absl::CancelledError("stopped while inputs were looked at");
    const auto changed = ChangedAt(path);
    was_written_to = was_written_to || !changed.has_value() || *changed > *kept;
    return absl::OkStatus();
  }));
  return was_written_to;
}

absl::StatusOr<bool> FetchedHome::IsDamaged(Reread reread,
                                            const std::atomic<bool>& cancelled) const {
  std::error_code error;
  if (fs::exists(folder_ / kDamaged, error)) return true;
  if (reread == Reread::kOnceABoot && !IsVerified()) {
    spdlog::info("{} is read for the first time since this machine was started", data().native());
    TUTTI_ASSIGN_OR_RETURN(const auto damaged, FirstDamaged(cancelled));
    if (damaged) {
      spdlog::warn("{} is not what was fetched", FileOf(*damaged).native());
      NoteDown(folder_ / kDamaged, absl::StrCat(*damaged, "\n"));
      return true;
    }
    NoteVerified();
  }
  if (WasLookedAt()) return false;
  const absl::Duration begin = base::SteadyNow();
  TUTTI_ASSIGN_OR_RETURN(const bool was_written_to, WasWrittenTo(cancelled));
  const double seconds = absl::ToDoubleSeconds(base::SteadyNow() - begin);
  NoteDown(folder_ / (was_written_to ? kDamaged : "looked"), absl::StrCat(seconds, "\n"));
  return was_written_to;
}

}  // namespace tutti::cache
