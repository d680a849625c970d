#include "base/process/read_only_view.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/machine/mounts.h"
#include "base/status.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

constexpr size_t kStackBytes = 64 << 10;
constexpr unsigned long kNoSymFollow = 256;  // MS_NOSYMFOLLOW, which older headers do not have

// One step of making the view.
struct Step {
  enum class Kind { kBind, kMakeReadOnly, kMakeReadOnlyIfReached };
  Kind kind;
  std::string path;
  unsigned long flags = 0;  // that its mount has
};

// Says what to make to the child that makes the view, and holds what that leaves behind: the child
// has this process's memory and descriptors.
struct Making {
  std::vector<Step> steps;
  bool is_root;
  std::string users, groups;  // for uid_map and gid_map
  int user_namespace = -1, mounts = -1;
  const char* failed = nullptr;  // what did
  const char* path = "";
  int error = 0;
};

int Failed(Making& making, const char* what, const char* path = "") {
  making.error = errno;
  making.failed = what;
  making.path = path;
  return 1;
}

bool WriteInto(const char* file, const char* text, size_t size) {
  const int fd = ::open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  const int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

// Who may not give itself groups may map its own.
bool BecomeItself(const Making& making) {
  return WriteInto("/proc/self/setgroups", "deny", 4) &&
         WriteInto("/proc/self/uid_map", making.users.data(), making.users.size()) &&
         WriteInto("/proc/self/gid_map", making.groups.data(), making.groups.size());
}

int TakeStep(Making& making, const Step& step) {
  const char* const path = step.path.c_str();
  if (step.kind == Step::Kind::kBind) {
    const bool bound = ::mount(path, path, nullptr, MS_BIND | MS_REC, nullptr) == 0;
    return bound ? 0 : Failed(making, "bind", path);
  }
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | step.flags;
  if (::mount(nullptr, path, nullptr, flags, nullptr) == 0) return 0;
  // No process of this user reaches what lies below another mount or a folder of somebody else's;
  // EINVAL: what that path leads to is no mount.
  const bool is_hidden = errno == ENOENT || errno == EACCES || errno == ENOTDIR || errno == EINVAL;
  if (step.kind == Step::Kind::kMakeReadOnlyIfReached && is_hidden) return 0;
  return Failed(making, "make read-only", path);
}

// Runs in the child, which is in namespaces of its own, and shares this process's memory and
// descriptors. Allocates nothing.
int MakeInChild(void* argument) {
  Making& making = *static_cast<Making*>(argument);
  if (!making.is_root && !BecomeItself(making)) return Failed(making, "map this user");
  // Later mounts of others appear here too, and those that are made here appear nowhere else; in a
  // user namespace the kernel sees to it.
  if (making.is_root && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return Failed(making, "keep mounts to itself");
  }
  for (const Step& step : making.steps) {
    if (TakeStep(making, step) != 0) return 1;
  }
  if (!making.is_root) {
    making.user_namespace = ::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    if (making.user_namespace < 0) return Failed(making, "open", "/proc/self/ns/user");
  }
  making.mounts = ::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  return making.mounts < 0 ? Failed(making, "open", "/proc/self/ns/mnt") : 0;
}

// No handler of this process may run in the child, so it begins with all signals blocked. It sends
// none when it ends: nobody else is to wait for it.
absl::Status RunMaker(Making& making) {
  std::vector<char> stack(kStackBytes);
  const auto top = reinterpret_cast<uintptr_t>(stack.data() + stack.size()) & ~uintptr_t{63};
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_NEWNS;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::clone(MakeInChild, reinterpret_cast<void*>(top),
                            flags | (making.is_root ? 0 : CLONE_NEWUSER), &making);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    return ErrnoStatus(making.is_root ? "a mount namespace"
                                      : absl::StrCat("a user namespace for user ", ::geteuid()),
                       error);
  }
  int status = 0;
  while (::waitpid(pid, &status, __WALL) < 0 && errno == EINTR) continue;
  if (making.mounts >= 0) return absl::OkStatus();
  if (making.failed == nullptr)
    return absl::InternalError("what makes a mount namespace was killed");
  const std::string what =
      absl::StrCat(making.failed, *making.path == '\0' ? "" : " ", making.path);
  return ErrnoStatus(absl::StrCat("in a mount namespace: ", what), making.error);
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && absl::StartsWith(path, folder) &&
         path[folder.size()] == '/';
}

// Without links, each once, folders before what lies in them.
absl::StatusOr<std::vector<std::string>> Canonical(const std::vector<fs::path>& paths) {
  std::vector<std::string> all;
  for (const fs::path& path : paths) {
    std::error_code error;
    fs::path canonical = fs::canonical(path, error);
    if (error) return ErrnoStatus(path.native(), error.value());
    all.push_back(canonical.native());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// A user namespace may not allow what a mount forbids, so the flags have to be given again.
unsigned long FlagsOf(const Mount* mount) {
  unsigned long flags = 0;
  if (mount == nullptr) return flags;
  for (const absl::string_view option : absl::StrSplit(mount->options, ',')) {
    if (option == "nosuid") flags |= MS_NOSUID;
    if (option == "nodev") flags |= MS_NODEV;
    if (option == "noexec") flags |= MS_NOEXEC;
    if (option == "nosymfollow") flags |= kNoSymFollow;
  }
  return flags;
}

// Folders that are to be writable are bound first: each is then a mount of its own, which the bind
// of a folder above it takes along as it is.
std::vector<Step> StepsOf(const std::vector<std::string>& read_only,
                          const std::vector<std::string>& writable,
                          const std::vector<Mount>& mounts) {
  std::vector<Step> steps;
  std::vector<std::string> spared;
  for (const std::string& path : writable) {
    const auto is_above = [&](const std::string& folder) { return IsBelow(path, folder); };
    if (std::none_of(read_only.begin(), read_only.end(), is_above)) continue;
    steps.push_back({Step::Kind::kBind, path});
    spared.push_back(path);
  }
  for (const std::string& path : read_only) {
    steps.push_back({Step::Kind::kBind, path});
    steps.push_back({Step::Kind::kMakeReadOnly, path, FlagsOf(MountOf(path, mounts))});
    for (const Mount& mount : mounts) {
      const auto has_it = [&](const std::string& folder) {
        return IsBelow(folder, path) && (mount.point == folder || IsBelow(mount.point, folder));
      };
      const bool is_spared = std::any_of(spared.begin(), spared.end(), has_it);
      // To look at what is mounted on demand would mount it.
      if (!IsBelow(mount.point, path) || is_spared || mount.type == "autofs") continue;
      steps.push_back({Step::Kind::kMakeReadOnlyIfReached, mount.point, FlagsOf(&mount)});
    }
  }
  return steps;
}

}  // namespace

absl::StatusOr<ReadOnlyView> ReadOnlyView::Make(const Paths& paths) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> read_only, Canonical(paths.read_only));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> writable, Canonical(paths.writable));
  if (std::find(read_only.begin(), read_only.end(), "/") != read_only.end()) {
    return absl::InvalidArgumentError("all of \"/\" cannot be read-only for a process");
  }
  std::erase_if(read_only, [&](const std::string& path) {
    return std::find(writable.begin(), writable.end(), path) != writable.end();
  });
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  Making making{.steps = StepsOf(read_only, writable, ReadMounts()),
                .is_root = user == 0,
                .users = absl::StrCat(user, " ", user, " 1\n"),
                .groups = absl::StrCat(group, " ", group, " 1\n")};
  const absl::Status made = RunMaker(making);
  std::vector<UniqueFd> namespaces;
  for (const int fd : {making.user_namespace, making.mounts}) {
    if (fd >= 0) namespaces.emplace_back(fd);
  }
  TUTTI_RETURN_IF_ERROR(made);
  return ReadOnlyView(std::move(namespaces));
}

std::vector<int> ReadOnlyView::descriptors() const {
  std::vector<int> descriptors;
  for (const UniqueFd& fd : namespaces_) descriptors.push_back(fd.get());
  return descriptors;
}

int ReadOnlyView::Enter(const char* directory) const {
  for (const UniqueFd& fd : namespaces_) {
    if (::setns(fd.get(), 0) != 0) return errno;
  }
  return ::chdir(directory) == 0 ? 0 : errno;
}

}  // namespace tutti::base
