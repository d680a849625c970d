#include "platform/cluster/mounts/mount_check.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::cluster {
namespace {

// statfs is asked of the server each time. What hangs in the kernel does not end by being killed,
// so nothing waits for it.
constexpr absl::string_view kCheckMount = R"sh(
is=$(awk -v p="$path" '$2 == p { s = $1 } END { print s }' $table)
if [ "$is" = "$source" ]; then
  if { timeout -s KILL 10 stat -f "$path" >/dev/null 2>&1 && echo yes & } | timeout 12 grep -q yes; then
    echo "mount=answers $path $source"
  else
    echo "mount=silent $path $source"
  fi
elif [ -n "$is" ]; then echo "mount=foreign $path $is"
elif grep -qsw nfs4 /proc/filesystems || modprobe -qn nfs4 2>/dev/null; then echo "mount=gone $path $source"
else echo "mount=no_client $path $source"; fi
)sh";

}  // namespace

std::string CheckMountsText(const std::vector<NfsMount>& mounts, absl::string_view table) {
  std::string script = mounts.empty() ? "" : absl::StrCat("table=", table, "\n");
  for (const NfsMount& mount : mounts) {
    absl::StrAppend(&script, "path=", mount.path, " source=", SourceOf(mount), kCheckMount);
  }
  return script;
}

void ReadMountAnswer(const std::string& text, std::vector<MountAnswer>& mounts) {
  static const auto& states =
      *new std::map<std::string, MountAnswer::State>{{"answers", MountAnswer::State::kAnswers},
                                                     {"silent", MountAnswer::State::kSilent},
                                                     {"foreign", MountAnswer::State::kForeign},
                                                     {"gone", MountAnswer::State::kGone},
                                                     {"no_client", MountAnswer::State::kNoClient}};
  const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  if (words.size() < 3 || !states.contains(words[0])) return;
  mounts.push_back({states.at(words[0]), words[1], words[2]});
}

std::string DetailOf(const MountAnswer& mount) {
  switch (mount.state) {
    case MountAnswer::State::kAnswers:
      return absl::StrCat(mount.path, " answers");
    case MountAnswer::State::kSilent:
      return absl::StrCat(mount.path, ": ", mount.source, " does not answer within 10 s");
    case MountAnswer::State::kForeign:
      return absl::StrCat(mount.path, " has ", mount.source, " mounted");
    case MountAnswer::State::kGone:
      return absl::StrCat(mount.path, " is not mounted");
    case MountAnswer::State::kNoClient:
      return absl::StrCat(mount.path, " is not mounted: this kernel has no NFS client");
  }
  return "";
}

std::string RemedyOf(const MountAnswer& mount) {
  switch (mount.state) {
    case MountAnswer::State::kAnswers:
      return "";
    case MountAnswer::State::kSilent:
      return "see that the file server runs (`tutti file-server show`), that its port is open to "
             "this node, and that its clients have it";
    case MountAnswer::State::kForeign:
      return absl::StrCat("unmount ", mount.path, ", then `tutti cluster create`");
    case MountAnswer::State::kGone:
      return "`tutti cluster create` mounts it";
    case MountAnswer::State::kNoClient:
      return "boot a kernel with nfs4; jobs read a file server by its datastore without a mount";
  }
  return "";
}

}  // namespace tutti::cluster
