#include "platform/engine/local/new_mounts.h"

#include <fcntl.h>
#include <poll.h>

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::engine {
namespace {

constexpr char kMounts[] = "/proc/self/mountinfo";
constexpr size_t kMostBytes = 16 << 20;

struct Line {
  std::string number, parent;
  bool shared = false;
};

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw"
std::vector<Line> LinesOf(absl::string_view mountinfo) {
  std::vector<Line> lines;
  for (const absl::string_view text : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(text, ' ');
    if (fields.size() < 7) continue;
    Line line{.number = fields[0], .parent = fields[1]};
    for (size_t i = 6; i < fields.size() && fields[i] != "-"; ++i) {
      line.shared |= absl::StartsWith(fields[i], "shared:");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::set<std::string> MountNumbers(absl::string_view mountinfo) {
  std::set<std::string> numbers;
  for (const Line& line : LinesOf(mountinfo)) numbers.insert(line.number);
  return numbers;
}

bool HasUnsharedMount(absl::string_view mountinfo, const std::set<std::string>& known) {
  const std::vector<Line> lines = LinesOf(mountinfo);
  std::map<std::string, bool> shared;
  for (const Line& line : lines) shared[line.number] = line.shared;
  for (const Line& line : lines) {
    const auto parent = shared.find(line.parent);
    if (!known.contains(line.number) && parent != shared.end() && !parent->second) return true;
  }
  return false;
}

NewMounts::NewMounts() {
  auto mounts = base::Open(kMounts, O_RDONLY);
  if (!mounts.ok()) return;
  mounts_ = *std::move(mounts);
  HaveChanged();  // from here on
  known_ = MountNumbers(base::ReadFile(kMounts, kMostBytes).value_or(""));
}

// The kernel tells each descriptor once of a change.
bool NewMounts::HaveChanged() const {
  pollfd changed = {mounts_.get(), POLLPRI, 0};
  return ::poll(&changed, 1, 0) > 0 && (changed.revents & (POLLPRI | POLLERR)) != 0;
}

bool NewMounts::Any() {
  if (!mounts_.valid() || !HaveChanged()) return false;
  const auto text = base::ReadFile(kMounts, kMostBytes);
  if (!text.ok()) return false;
  const bool any = HasUnsharedMount(*text, known_);
  known_ = MountNumbers(*text);
  return any;
}

}  // namespace tutti::engine
