#include "platform/service/retention/caches.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/status.h"
#include "platform/cache/cache_census.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kGoneCachePrefix = ".gone-";
constexpr absl::string_view kSnapshotPrefix = "sha256-";
constexpr absl::string_view kProgramPrefix = "program-";
constexpr size_t kDigestLength = 64;  // of SHA-256, hexadecimal
constexpr size_t kKeyLength = 24;     // of an environment, or of what was fetched
constexpr absl::Duration kPatienceWithRemoval = absl::Seconds(10);

bool IsKey(absl::string_view name) {
  return name.size() == kKeyLength && std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
}

// Whether something is being fetched there, or was when its launcher ended.
bool IsGrowing(const fs::path& folder) {
  const std::vector<std::string> names = base::NamesIn(folder);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "part" || name == "whole" || absl::EndsWith(name, ".part");
  });
}

}  // namespace

uint64_t BytesBelow(const fs::path& path, SharedFiles shared) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return 0;
  if (!S_ISDIR(info.st_mode)) return static_cast<uint64_t>(info.st_size);
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator
           entry(path, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    if (::lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      const auto names = shared == SharedFiles::kCountInParts ? info.st_nlink : 1;
      bytes += static_cast<uint64_t>(info.st_size) / std::max<uint64_t>(names, 1);
    }
  }
  return bytes;
}

std::vector<KeptKind> Caches::kinds() const {
  if (!place_.empty()) return {KeptKind::kData, KeptKind::kEnvironments};
  return {KeptKind::kSnapshots, KeptKind::kData, KeptKind::kEnvironments};
}

void Caches::Ask() const {
  std::error_code ignored;
  for (const KeptKind kind : kinds()) fs::directory_iterator(FolderOf(kind), ignored);
}

fs::path Caches::FolderOf(KeptKind kind) const { return root_ / std::string(Name(kind)); }

fs::path Caches::PathOf(KeptKind kind, const std::string& name) const {
  const bool is_snapshot = kind == KeptKind::kSnapshots;
  return FolderOf(kind) /
         (is_snapshot ? absl::StrCat(kSnapshotPrefix, absl::StripPrefix(name, "sha256:")) : name);
}

std::set<std::string> Caches::Programs() const {
  const fs::path folder = FolderOf(KeptKind::kSnapshots);
  // It maps what stands before the key: "program-" is tutti, "program-NAME-" another.
  std::map<std::string, std::pair<absl::Time, std::string>> newest;
  for (const std::string& name : base::NamesIn(folder)) {
    if (!absl::StartsWith(name, kProgramPrefix) || name.size() < kDigestLength) continue;
    const auto changed = base::ChangedAt(folder / name);
    const auto hex = base::ReadFile(folder / name, kDigestLength);
    if (!changed || !hex.ok()) continue;
    auto& of_program = newest[name.substr(0, name.size() - kDigestLength)];
    of_program = std::max(of_program, {*changed, absl::StrCat("sha256:", *hex)});
  }
  std::set<std::string> programs;
  for (const auto& [program, snapshot] : newest) programs.insert(snapshot.second);
  return programs;
}

uint64_t Caches::BytesOf(KeptKind kind, const fs::path& path) const {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto known = bytes_.find(path.native()); known != bytes_.end()) return known->second;
  }
  if (kind != KeptKind::kData) return Remember(path, BytesBelow(path));
  const bool is_growing = IsGrowing(path);  // what ends meanwhile is measured once more
  const uint64_t bytes = BytesBelow(path, SharedFiles::kCountInParts);
  return is_growing ? bytes : Remember(path, bytes);
}

uint64_t Caches::Remember(const fs::path& path, uint64_t bytes) const {
  absl::MutexLock lock(&mutex_);
  return bytes_[path.native()] = bytes;
}

void Caches::ForgetBytesIfOthersAreThere(KeptKind kind,
                                         const std::vector<std::string>& names) const {
  if (kind != KeptKind::kData) return;
  std::set<std::string> data;
  for (const std::string& name : names) {
    if (IsKey(name)) data.insert(absl::StrCat(name, IsGrowing(FolderOf(kind) / name) ? "+" : ""));
  }
  absl::MutexLock lock(&mutex_);
  if (data_ == data) return;
  data_ = std::move(data);
  const std::string prefix = absl::StrCat(FolderOf(kind).native(), "/");
  std::erase_if(bytes_, [&](const auto& one) { return absl::StartsWith(one.first, prefix); });
}

std::vector<Kept> Caches::List(KeptKind kind, const InUse& in_use) const {
  const fs::path folder = FolderOf(kind);
  const bool of_snapshots = kind == KeptKind::kSnapshots;
  const std::set<std::string> programs = of_snapshots ? Programs() : std::set<std::string>();
  // Jobs say themselves which snapshots they need.
  const absl::Time used_since =
      (of_snapshots ? InUse() : in_use).UsedSince(place_, state_.clock->Now());
  std::vector<Kept> list;
  const std::vector<std::string> names = base::NamesIn(folder);
  ForgetBytesIfOthersAreThere(kind, names);
  for (const std::string& file : names) {
    absl::string_view hex = file;
    if (of_snapshots ? !absl::ConsumePrefix(&hex, kSnapshotPrefix) : !IsKey(file)) continue;
    Kept kept{.kind = kind, .name = of_snapshots ? absl::StrCat("sha256:", hex) : file};
    kept.place = place_;
    const bool is_half =
        kind == KeptKind::kEnvironments && !base::ChangedAt(folder / file / "complete");
    const auto changed = base::ChangedAt(folder / file);
    if (!changed || is_half || state_.ending) continue;
    kept.last_use = *changed;
    kept.bytes = BytesOf(kind, folder / file);
    kept.in_use = kept.last_use >= used_since || programs.contains(kept.name) ||
                  in_use.snapshots.contains(kept.name);
    list.push_back(std::move(kept));
  }
  return list;
}

// Removes it by its name, in one step, while nobody else can take it.
absl::StatusOr<bool> Caches::RemoveUnchanged(const Kept& kept) const {
  const fs::path path = PathOf(kept.kind, kept.name);
  if (base::ChangedAt(path) != kept.last_use) return false;
  TUTTI_RETURN_IF_ERROR(janitor().RenameAndRemove(path, kGoneCachePrefix));
  absl::MutexLock lock(&mutex_);
  bytes_.erase(path.native());
  return true;
}

// Under the lock of those who make and take it, which are other processes.
absl::StatusOr<bool> Caches::RemoveFolder(const Kept& kept) const {
  const fs::path path = PathOf(kept.kind, kept.name);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         base::Open(path.native() + ".lock", O_RDWR | O_CREAT));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    return base::ErrnoStatus(absl::StrCat("lock ", path.native()));
  }
  // A job may have read it for longer than the service knows of.
  if (kept.kind == KeptKind::kData && cache::IsPinned(FolderOf(kept.kind), kept.name)) return false;
  TUTTI_ASSIGN_OR_RETURN(const bool removed, RemoveUnchanged(kept));
  std::error_code ignored;
  if (removed) fs::remove(path.native() + ".log", ignored);
  if (removed && kept.kind == KeptKind::kData) cache::ForgetPins(FolderOf(kept.kind), kept.name);
  return removed;
}

absl::StatusOr<bool> Caches::Remove(const Kept& kept) const {
  if (kept.kind != KeptKind::kSnapshots) return RemoveFolder(kept);
  // Whoever asks for a snapshot does so in its queue.
  const auto removed = std::make_shared<absl::StatusOr<bool>>(false);
  const bool answers = state_.snapshot_work.DoWithin(
      kept.name, [this, removed, kept] { *removed = RemoveUnchanged(kept); },
      base::Deadline::After(kPatienceWithRemoval));
  return answers ? *removed : absl::StatusOr<bool>(false);
}

void Caches::Resume() const {
  for (const KeptKind kind : kinds()) {
    for (const std::string& name : base::NamesIn(FolderOf(kind))) {
      if (absl::StartsWith(name, kGoneCachePrefix)) janitor().Remove(FolderOf(kind) / name);
    }
  }
}

}  // namespace tutti::service
