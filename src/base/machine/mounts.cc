#include "base/machine/mounts.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <list>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

constexpr char kMountInfo[] = "/proc/self/mountinfo";
constexpr int kMostLinks = 40;  // as the kernel has it
constexpr size_t kMostBytes = 16 << 20;

// The kernel writes blanks and backslashes as "\040".
std::string Unescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '\\' && i + 3 < text.size();
    if (!is_code) {
      plain += text[i];
      continue;
    }
    plain +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
    i += 3;
  }
  return plain;
}

bool IsAtOrBelow(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  return absl::StartsWith(path, point) &&
         (path.size() == point.size() || path[point.size()] == '/');
}

}  // namespace

std::vector<Mount> ReadMounts() {
  const auto text = ReadFile(kMountInfo, kMostBytes);
  return text.ok() ? MountsFrom(*text) : std::vector<Mount>();
}

MountChanges::MountChanges() {
  if (auto file = Open(kMountInfo, O_RDONLY); file.ok()) file_ = *std::move(file);
  if (file_.valid()) Any();  // from here on
}

// The kernel tells each descriptor once of a change.
bool MountChanges::Any() {
  if (!file_.valid()) return true;
  pollfd changed = {file_.get(), POLLPRI, 0};
  return ::poll(&changed, 1, 0) != 0;
}

std::shared_ptr<const std::vector<Mount>> WatchedMounts::Now() {
  absl::MutexLock lock(&mutex_);
  if (changes_.Any() || mounts_ == nullptr) {
    mounts_ = std::make_shared<const std::vector<Mount>>(ReadMounts());
  }
  const auto now = mounts_;
  if (now->empty()) mounts_.reset();  // the kernel did not say
  return now;
}

std::vector<Mount> MountsFrom(absl::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 2) continue;
    int id = 0;
    static_cast<void>(absl::SimpleAtoi(fields[0], &id));
    mounts.push_back({Unescaped(fields[4]), std::string(*(dash + 1)), std::string(fields[5]), id});
  }
  return mounts;
}

// The longest point, of the same the last one.
const Mount* MountOf(const std::string& path, const std::vector<Mount>& mounts) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (!IsAtOrBelow(path, mount.point)) continue;
    if (found == nullptr || mount.point.size() >= found->point.size()) found = &mount;
  }
  return found;
}

bool IsLocal(absl::string_view type) {
  static const auto* const local = new std::set<absl::string_view>{
      "bcachefs", "binfmt_misc", "bpf",      "btrfs",    "cgroup",    "cgroup2", "configfs",
      "debugfs",  "devpts",      "devtmpfs", "efivarfs", "erofs",     "exfat",   "ext2",
      "ext3",     "ext4",        "f2fs",     "fusectl",  "hugetlbfs", "iso9660", "jfs",
      "mqueue",   "nsfs",        "ntfs3",    "overlay",  "proc",      "pstore",  "ramfs",
      "rootfs",   "securityfs",  "squashfs", "sysfs",    "tmpfs",     "tracefs", "udf",
      "vfat",     "xfs",         "zfs"};
  return local->contains(type);
}

std::string RemoteMountOf(const fs::path& path, const std::vector<Mount>& mounts) {
  const auto is_remote = [](const Mount& mount) { return !IsLocal(mount.type); };
  if (std::none_of(mounts.begin(), mounts.end(), is_remote)) return "";
  std::list<fs::path> parts(path.begin(), path.end());
  fs::path now = "/";
  int links = 0;
  while (!parts.empty()) {
    const fs::path part = parts.front();
    parts.pop_front();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      now = now.parent_path();
      continue;
    }
    const fs::path next = now / part;
    const Mount* const mount = MountOf(next.native(), mounts);
    // Where the root is on a server nothing goes on without that.
    if (mount != nullptr && mount->point != "/" && !IsLocal(mount->type)) return mount->point;
    std::error_code error;
    const fs::path target = fs::read_symlink(next, error);
    if (error) {  // no link
      now = next;
      continue;
    }
    if (++links > kMostLinks) return "";
    if (target.is_absolute()) now = "/";
    parts.insert(parts.begin(), target.begin(), target.end());
  }
  return "";
}

}  // namespace tutti::base
