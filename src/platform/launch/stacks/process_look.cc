#include "platform/launch/stacks/process_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "platform/launch/process/process_tree.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestCommand = 4096;
constexpr size_t kMostMaps = 4 << 20;
constexpr size_t kMostThreads = 256;

std::string FileOf(pid_t pid, absl::string_view name, size_t most = 4096) {
  return base::ReadFile(absl::StrCat("/proc/", pid, "/", name), most).value_or("");
}

// The state stands behind the name, which may hold anything.
char StateIn(absl::string_view stat) {
  const size_t name_end = stat.rfind(')');
  const bool has_state = name_end != absl::string_view::npos && name_end + 2 < stat.size();
  return has_state ? stat[name_end + 2] : '?';
}

bool RunsPython(pid_t pid) {
  std::error_code error;
  const fs::path program = fs::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error);
  if (absl::StartsWith(program.filename().native(), "python")) return true;
  return absl::StrContains(FileOf(pid, "maps", kMostMaps), "/libpython");
}

bool IsContained(pid_t pid) {
  struct stat own = {}, its = {};
  const std::string root = absl::StrCat("/proc/", pid, "/root");
  if (::stat("/", &own) != 0 || ::stat(root.c_str(), &its) != 0) return false;
  return own.st_dev != its.st_dev || own.st_ino != its.st_ino;
}

// Returns the kernel's stack of a thread, where it may be read: "futex_wait < do_futex < …".
std::string KernelFrames(pid_t pid, pid_t thread) {
  std::string frames;
  const std::string stack = FileOf(pid, absl::StrCat("task/", thread, "/stack"), 64 << 10);
  for (absl::string_view line : absl::StrSplit(stack, '\n', absl::SkipEmpty())) {
    absl::ConsumePrefix(&line, "[<0>] ");
    absl::StrAppend(&frames, frames.empty() ? "" : " < ", line.substr(0, line.find('+')));
  }
  return frames;
}

std::string ThreadLine(pid_t pid, pid_t thread) {
  const std::string folder = absl::StrCat("task/", thread, "/");
  const std::string name(absl::StripSuffix(FileOf(pid, folder + "comm"), "\n"));
  const std::string waits = FileOf(pid, folder + "wchan");
  std::string call = FileOf(pid, folder + "syscall");
  call.resize(std::min(call.find_first_of(" \n"), call.size()));
  std::string line = absl::StrCat("Thread ", thread, " (", name, "), state ",
                                  std::string(1, StateIn(FileOf(pid, folder + "stat"))));
  if (!waits.empty() && waits != "0") absl::StrAppend(&line, ", in ", waits);
  int number = 0;
  if (absl::SimpleAtoi(call, &number) && number >= 0) {
    absl::StrAppend(&line, ", system call ", number);
  }
  const std::string frames = KernelFrames(pid, thread);
  return absl::StrCat(line, "\n", frames.empty() ? "" : absl::StrCat("    ", frames, "\n"));
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (fs::directory_iterator at(absl::StrCat("/proc/", pid, "/task"), error), end;
       !error && at != end; at.increment(error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(at->path().filename().native(), &thread)) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace

std::optional<char> StateOf(pid_t pid, uint64_t began) {
  const auto now = base::ProcessStartTime(pid);
  if (!now.ok() || *now != began) return std::nullopt;
  const char state = StateIn(FileOf(pid, "stat"));
  if (state == 'Z' || state == 'X') return std::nullopt;
  return state;
}

std::optional<ProcessFacts> LookAtProcess(pid_t pid) {
  const auto began = base::ProcessStartTime(pid);
  const auto state = began.ok() ? StateOf(pid, *began) : std::nullopt;
  if (!state) return std::nullopt;
  ProcessFacts facts{.began = *began, .state = *state};
  const std::string arguments = FileOf(pid, "cmdline", kLongestCommand);
  const std::string program = arguments.substr(0, arguments.find('\0'));
  facts.command = absl::StrReplaceAll(absl::StripSuffix(arguments, absl::string_view("\0", 1)),
                                      {{absl::string_view("\0", 1), " "}});
  facts.is_python = RunsPython(pid);
  facts.is_contained = IsContained(pid);
  facts.path = EnvironmentVariableOf(pid, "PATH");
  if (absl::StartsWith(program, "/")) {
    facts.path = absl::StrCat(fs::path(program).parent_path().native(), ":", facts.path);
  }
  return facts;
}

std::string KernelStacks(pid_t pid) {
  std::string lines;
  const std::vector<pid_t> threads = ThreadsOf(pid);
  for (size_t i = 0; i < std::min(threads.size(), kMostThreads); ++i) {
    lines += ThreadLine(pid, threads[i]);
  }
  if (threads.size() > kMostThreads) {
    absl::StrAppend(&lines, "[", threads.size() - kMostThreads, " threads are left out here]\n");
  }
  return lines;
}

std::string FindProgram(absl::string_view name, absl::string_view path) {
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    if (!absl::StartsWith(folder, "/")) continue;
    const std::string program = absl::StrCat(folder, "/", name);
    struct stat file = {};
    const bool is_file = ::stat(program.c_str(), &file) == 0 && S_ISREG(file.st_mode);
    if (is_file && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

}  // namespace tutti::launch
