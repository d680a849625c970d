#include "platform/launch/delivery/unkept.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/file.h"
#include "platform/launch/delivery/result_kind.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

absl::Time TimeOf(const struct statx_timestamp& at) {
  return absl::FromUnixSeconds(at.tv_sec) + absl::Nanoseconds(at.tv_nsec);
}

bool Stat(const fs::path& path, struct statx& status) {
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                 STATX_BASIC_STATS | STATX_BTIME, &status) == 0;
}

// Made or rewritten since then. A file that was unpacked has any modification time, and a change of
// its mode or name is none of its content.
bool IsWrittenSince(const struct statx& status, absl::Time since) {
  const bool changed = TimeOf(status.stx_ctime) > since;
  if ((status.stx_mask & STATX_BTIME) == 0) return changed;
  return TimeOf(status.stx_btime) > since || (changed && TimeOf(status.stx_mtime) > since);
}

bool IsPassedOver(absl::string_view name) {
  return name.empty() || name[0] == '.' || name == "__pycache__" || name == "node_modules" ||
         absl::EndsWith(name, ".pyc");
}

// The deepest folder that both lie in, or the path itself if they are the same.
fs::path Common(const fs::path& a, const fs::path& b) {
  fs::path common;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end() && *x == *y; ++x, ++y) {
    common /= *x;
  }
  return common;
}

class Search {
 public:
  Search(const fs::path& work, absl::Time since, const UnkeptLimits& limits)
      : work_(work),
        since_(since),
        left_(limits.entries),
        deadline_(base::Deadline::After(limits.time)) {}

  UnkeptFiles Run() {
    std::error_code error;
    auto entry = fs::directory_iterator(work_, error);
    for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().native();
      if (name == "outputs" || name == "logs") continue;
      Unkept found;
      Take(entry->path(), found);
      if (found.bytes >= kSmallestUnkept || found.result) {
        found_.largest.push_back(std::move(found));
      } else if (found.bytes > 0) {
        Add(found.path, found.bytes, found_.small);
      }
    }
    std::sort(found_.largest.begin(), found_.largest.end(), [](const Unkept& a, const Unkept& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.path < b.path;
    });
    std::array<size_t, 2> taken = {};
    std::erase_if(found_.largest,
                  [&](const Unkept& one) { return ++taken[one.result ? 1 : 0] > kMostUnkept; });
    return std::move(found_);
  }

 private:
  void Take(const fs::path& path, Unkept& found) {
    if (found_.more || IsPassedOver(path.filename().native())) return;
    if (--left_ < 0 || deadline_.Expired()) {
      found_.more = true;
      return;
    }
    struct statx status = {};
    if (!Stat(path, status)) return;
    if (S_ISDIR(status.stx_mode)) return TakeFolder(path, found);
    const bool counts = S_ISREG(status.stx_mode) && status.stx_size > 0 && IsLastName(status);
    if (!counts || !IsWrittenSince(status, since_)) return;
    const fs::path own = path.lexically_relative(work_);
    Add(own, status.stx_size, found);
    found.result |= IsResultByKind(own);
  }

  static void Add(const fs::path& path, uint64_t bytes, Unkept& found) {
    found.path = found.bytes == 0 ? path.native() : Common(found.path, path).native();
    found.bytes += bytes;
  }

  // Returns whether this is the last of the file's hard links to be seen: then none of them lies
  // outside the folders that are searched.
  bool IsLastName(const struct statx& status) {
    if (status.stx_nlink == 1) return true;
    const std::tuple file(status.stx_dev_major, status.stx_dev_minor, status.stx_ino);
    return ++names_[file] == status.stx_nlink;
  }

  void TakeFolder(const fs::path& folder, Unkept& found) {
    if (base::IsPythonEnvironment(folder)) return;
    std::error_code error;
    auto entry = fs::directory_iterator(folder, error);
    for (const fs::directory_iterator end; !error && entry != end && !found_.more;
         entry.increment(error)) {
      Take(entry->path(), found);
    }
  }

  const fs::path& work_;
  const absl::Time since_;
  int left_;
  const base::Deadline deadline_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint32_t>
      names_;  // seen of those with several
  UnkeptFiles found_;
};

}  // namespace

UnkeptFiles UnkeptBelow(const fs::path& work, absl::Time since, const UnkeptLimits& limits) {
  return Search(work, since, limits).Run();
}

absl::Time ChangeTime(const fs::path& file) {
  struct statx status = {};
  return Stat(file, status) ? TimeOf(status.stx_ctime) : absl::InfinitePast();
}

}  // namespace tutti::launch
