#include "platform/engine/local/new_mounts.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::engine {
namespace {

constexpr char kMounts[] = "/proc/self/mountinfo";
constexpr size_t kMostBytes = 16 << 20;

struct MountLine {
  std::string number, parent, device, root, point, type, source;
  bool shared = false;
};

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw"
std::vector<MountLine> MountLinesOf(absl::string_view mountinfo) {
  std::vector<MountLine> lines;
  for (const absl::string_view text : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(text, ' ');
    if (fields.size() < 7) continue;
    MountLine line{.number = fields[0],
                   .parent = fields[1],
                   .device = fields[2],
                   .root = fields[3],
                   .point = fields[4]};
    size_t i = 6;
    for (; i < fields.size() && fields[i] != "-"; ++i) {
      line.shared |= absl::StartsWith(fields[i], "shared:");
    }
    if (i + 2 < fields.size()) {
      line.type = fields[i + 1];
      line.source = fields[i + 2];
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// The number alone may be that of another mount since: the kernel takes the lowest that is free.
std::string MountIdentity(const MountLine& line) {
  return absl::StrJoin({line.number, line.device, line.root, line.point, line.type, line.source},
                       " ");
}

// Returns whether it is the folder that is seen there in any case, made a mount of its own.
bool IsABindOnItself(const MountLine& line, const MountLine& parent) {
  absl::string_view below = line.point;
  const bool is_below = absl::ConsumePrefix(&below, absl::StripSuffix(parent.point, "/"));
  return is_below && line.device == parent.device &&
         line.root == absl::StrCat(absl::StripSuffix(parent.root, "/"), below);
}

// Returns whether podman, docker or containerd mounted it for a container: no job looks there for
// files. Each container that begins has some.
bool IsOfAContainer(const MountLine& line) {
  const auto ends_with = [&](absl::string_view end) { return absl::EndsWith(line.point, end); };
  return line.type == "nsfs" ||
         (line.type == "overlay" && (ends_with("/merged") || ends_with("/rootfs"))) ||
         (line.type == "tmpfs" && (ends_with("/userdata/shm") || ends_with("/mounts/shm")));
}

}  // namespace

std::set<std::string> MountsIn(absl::string_view mountinfo) {
  std::set<std::string> mounts;
  for (const MountLine& line : MountLinesOf(mountinfo)) mounts.insert(MountIdentity(line));
  return mounts;
}

bool HasUnsharedMount(absl::string_view mountinfo, const std::set<std::string>& known) {
  const std::vector<MountLine> lines = MountLinesOf(mountinfo);
  std::map<std::string, const MountLine*> by_number;
  for (const MountLine& line : lines) by_number[line.number] = &line;
  for (const MountLine& line : lines) {
    const auto parent = by_number.find(line.parent);
    const bool is_unshared = parent != by_number.end() && !parent->second->shared;
    if (!is_unshared || known.contains(MountIdentity(line))) continue;
    if (!IsABindOnItself(line, *parent->second) && !IsOfAContainer(line)) return true;
  }
  return false;
}

NewMounts::NewMounts() { known_ = MountsIn(base::ReadFile(kMounts, kMostBytes).value_or("")); }

bool NewMounts::Any() {
  if (!changes_.are_told() || !changes_.Any()) return false;
  const auto text = base::ReadFile(kMounts, kMostBytes);
  if (!text.ok()) return false;
  const bool any = HasUnsharedMount(*text, known_);
  known_ = MountsIn(*text);
  return any;
}

}  // namespace tutti::engine
