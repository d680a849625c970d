#include "platform/cluster/mounts/mount_steps.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace tutti::cluster {
namespace {

// Puts fstab in place whole, or leaves it; `edit` is what writes the new one.
std::string EditFstabText(const HostFacts& host, absl::string_view edit) {
  return absl::StrCat(
      "[ -f /etc/fstab ] || (umask 022; : >>/etc/fstab)\n",
      "cp -p /etc/fstab /etc/fstab.tutti-new\n",
      "[ -z \"$(tail -c1 /etc/fstab.tutti-new)\" ] || echo >>/etc/fstab.tutti-new\n", edit,
      "mv /etc/fstab.tutti-new /etc/fstab\n", host.systemd ? "systemctl daemon-reload\n" : "");
}

std::string WithoutLineText(absl::string_view line) {
  return absl::StrCat("grep -vxF -e '", line, "' /etc/fstab >/etc/fstab.tutti-new || [ $? = 1 ]\n");
}

// A server that is gone holds up umount; a program that works there makes it fail at once.
std::string UnmountText(const HostFacts& host, absl::string_view line) {
  return absl::StrCat("path=", PathOfFstabLine(line), R"sh(
if awk -v p="$path" '$2 == p { found = 1 } END { exit !found }' /proc/self/mounts; then
  code=0; why=$(timeout -k 5 30 umount "$path" 2>&1) || code=$?
  case $code in
    0) ;;
    124|137) umount -f -l "$path" ;;
    *) echo "${why:-cannot unmount $path}; \`fuser -vm $path\` there says who uses it" >&2; exit 1 ;;
  esac
fi
)sh",
                      EditFstabText(host, WithoutLineText(line)));
}

// A folder that has files of its own is not hidden under a mount.
std::string MountText(const HostFacts& host, const NfsMount& mount) {
  const std::string line = FstabLine(mount);
  std::string script = absl::StrCat("path=", mount.path, " source=", SourceOf(mount),
                                    " address=", mount.server, ":", mount.port, R"sh(
mkdir -p "$path"
if [ -n "$(ls -A "$path")" ]; then
  echo "$path has files, which a mount would hide: move them away, or name another path by --mount" >&2; exit 1
fi
)sh");
  if (!host.mount_lines.contains(line)) {
    absl::StrAppend(
        &script, EditFstabText(host, absl::StrCat("echo '", line, "' >>/etc/fstab.tutti-new\n")));
  }
  return absl::StrCat(script, R"sh(
if ! why=$(timeout -k 5 60 mount "$path" 2>&1); then
  echo "$source at $path: ${why:-no answer within 60 s}; see that $address answers this node, and that the file server's clients have it" >&2; exit 1
fi
)sh");
}

bool IsMounted(const HostFacts& host, const NfsMount& mount) {
  const auto found = host.mounted.find(mount.path);
  return found != host.mounted.end() && found->second == SourceOf(mount);
}

// Returns whether tutti mounts something there, which it may then remove.
bool IsOfTutti(const HostFacts& host, const std::string& path) {
  for (const std::string& line : host.mount_lines) {
    if (PathOfFstabLine(line) == path) return true;
  }
  return false;
}

}  // namespace

std::vector<MountStep> MountSteps(const std::vector<NfsMount>& mounts, const HostFacts& host) {
  std::vector<MountStep> steps;
  std::set<std::string> wanted;
  for (const NfsMount& mount : mounts) wanted.insert(FstabLine(mount));
  std::set<std::string> freed;
  for (const std::string& line : host.mount_lines) {
    if (wanted.contains(line)) continue;
    freed.insert(PathOfFstabLine(line));
    steps.push_back({absl::StrCat("unmount ", PathOfFstabLine(line)), UnmountText(host, line)});
  }
  for (const NfsMount& mount : mounts) {
    // One that whoever administers the node has mounted there is as good.
    if (IsMounted(host, mount) && !freed.contains(mount.path)) continue;
    steps.push_back(
        {absl::StrCat("mount ", SourceOf(mount), " at ", mount.path), MountText(host, mount)});
  }
  return steps;
}

std::string UnmountAllText(const HostFacts& host) {
  std::string script;
  for (const std::string& line : host.mount_lines)
    absl::StrAppend(&script, UnmountText(host, line));
  return script;
}

std::vector<std::string> MountProblems(const std::vector<NfsMount>& mounts, const HostFacts& host) {
  std::vector<std::string> against;
  if (!mounts.empty() && !host.nfs_client) {
    against.push_back(absl::StrCat(
        host.host,
        " has no NFS client in its kernel (no nfs4 in /proc/filesystems, nor as a module): boot a "
        "kernel that has one, or leave --mount out: jobs read a file server by its datastore "
        "without a mount"));
  }
  for (const NfsMount& mount : mounts) {
    const auto found = host.mounted.find(mount.path);
    const bool is_foreign = found != host.mounted.end() && !IsMounted(host, mount);
    if (!is_foreign || IsOfTutti(host, mount.path)) continue;
    against.push_back(absl::StrCat(host.host, " has ", found->second, " mounted at ", mount.path,
                                   ": unmount it there, and take it out of its /etc/fstab, or name "
                                   "another path by --mount"));
  }
  return against;
}

}  // namespace tutti::cluster
