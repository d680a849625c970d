#include "platform/launch/process/process_limit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kFewestProcesses = 1024;

int NumberIn(const char* file, int otherwise) {
  const auto text = base::ReadFile(file, 4096);
  int number = 0;
  return text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &number) ? number
                                                                                   : otherwise;
}

constexpr char kReserved[] = "tutti.standby.";

// The cgroup that counts this process's processes, by v1; empty if there is none.
fs::path OwnCgroup() {
  const auto text = base::ReadFile("/proc/self/cgroup", 1 << 16);
  if (!text.ok()) return {};
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || fields[1] != "pids") continue;
    return fs::path("/sys/fs/cgroup/pids") / std::string(fields[2].substr(1));
  }
  return {};
}

// This process has reserved the folder, as long as no ProcessLimit has taken it.
fs::path reserved_folder;

// Whether that was reserved by this process.
bool IsReserved(const fs::path& cgroup) {
  const std::string name = cgroup.filename().string();
  return absl::StartsWith(name, "tutti.") && absl::EndsWith(name, absl::StrCat(".", ::getpid()));
}

bool SetLimit(const fs::path& cgroup, int most) {
  const auto limit = base::Open(cgroup / "pids.max", O_WRONLY);
  return limit.ok() && base::WriteAll(limit->get(), absl::StrCat(most), "pids.max").ok();
}

bool EnterCgroup(const fs::path& cgroup) {
  const auto members = base::Open(cgroup / "cgroup.procs", O_WRONLY);
  return members.ok() && base::WriteAll(members->get(), "0", "cgroup.procs").ok();
}

// The folder in which this process, of the cgroup `own` by v1, may make cgroups that count
// processes; empty: none. With cgroup v2 it is the one above its own, since a cgroup with processes
// in it has none below that are limited.
fs::path CgroupParent(const fs::path& own) {
  if (!own.empty()) return IsReserved(own) ? own.parent_path() : own;
  const auto text = base::ReadFile("/proc/self/cgroup", 1 << 16);
  if (!text.ok()) return {};
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::StartsWith(line, "0::/")) continue;
    const fs::path unified = fs::path("/sys/fs/cgroup") / std::string(line.substr(4));
    const fs::path parent = unified == "/sys/fs/cgroup/" ? unified : unified.parent_path();
    const auto passed_on = base::ReadFile(parent / "cgroup.subtree_control", 4096);
    if (passed_on.ok() && absl::StrContains(*passed_on, "pids")) return parent;
  }
  return {};
}

std::string LimitName(const spec::LaunchPlan& plan) {
  return absl::StrCat("tutti.", plan.allocation_id, ".", plan.node_index, ".");
}

}  // namespace

void RemoveProcessLimits(const spec::LaunchPlan& plan) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(CgroupParent(OwnCgroup()), error)) {
    if (absl::StartsWith(entry.path().filename().string(), LimitName(plan))) {
      ::rmdir(entry.path().c_str());
    }
  }
}

void ReserveProcessLimit() {
  const fs::path parent = OwnCgroup();
  if (parent.empty() || IsReserved(parent)) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view owner = name;
    pid_t pid = 0;
    const bool reserved = absl::ConsumePrefix(&owner, kReserved) && absl::SimpleAtoi(owner, &pid);
    // One that lives may be about to enter it.
    if (reserved && ::kill(pid, 0) != 0) ::rmdir(entry.path().c_str());
  }
  const fs::path folder = parent / absl::StrCat(kReserved, ::getpid());
  if (!fs::create_directory(folder, error)) return;
  if (SetLimit(folder, MostProcesses()) && EnterCgroup(folder)) {
    reserved_folder = folder;
  } else {
    ::rmdir(folder.c_str());
  }
}

void ReturnProcessLimit() {
  const fs::path own = OwnCgroup();
  if (IsReserved(own) && EnterCgroup(own.parent_path())) ::rmdir(own.c_str());
}

int MostProcesses() {
  static const int numbers = std::min(NumberIn("/proc/sys/kernel/pid_max", 32768),
                                      NumberIn("/proc/sys/kernel/threads-max", 32768));
  return std::max(kFewestProcesses, numbers / 4);
}

ProcessLimit::ProcessLimit(const spec::LaunchPlan& plan, int most) {
  if (most <= 0) return;
  const std::string name = absl::StrCat(LimitName(plan), ::getpid());
  std::error_code error;
  if (const fs::path reserved = std::exchange(reserved_folder, {}); !reserved.empty()) {
    const fs::path folder = reserved.parent_path() / name;
    fs::rename(reserved, folder, error);
    reserved_ = !error && (most == MostProcesses() || SetLimit(folder, most));
    if (reserved_) return;
  }
  const fs::path parent = CgroupParent(OwnCgroup());
  if (parent.empty()) return;
  const fs::path folder = parent / name;
  if (!fs::create_directory(folder, error)) return;
  folder_ = folder;
  if (!SetLimit(folder, most)) return;
  auto members = base::Open(folder / "cgroup.procs", O_WRONLY);
  if (members.ok()) members_ = *std::move(members);
}

ProcessLimit::~ProcessLimit() {
  members_.reset();
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

int ProcessLimit::Enter() const {
  // The job runs on without the limit rather than not at all.
  [[maybe_unused]] const bool entered = members_.valid() && ::write(members_.get(), "0", 1) == 1;
  return 0;
}

}  // namespace tutti::launch
