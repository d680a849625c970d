#include "platform/launch/node/hang_watch.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "platform/launch/node/exit_reason.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kLooks = 8;  // within the limit
constexpr absl::Duration kDefaultLimit = absl::Minutes(10);
constexpr unsigned kRecordingSeconds = 10;  // the note's file system may be the one

fs::path FolderOf(pid_t thread) { return fs::path("/proc/self/task") / absl::StrCat(thread); }

// How often it has run so far, if it is in such a wait now.
std::optional<uint64_t> RunsOfStuck(pid_t thread) {
  const auto status = base::ReadFile(FolderOf(thread) / "status");
  if (!status.ok()) return std::nullopt;
  bool stuck = false;
  uint64_t runs = 0;
  for (absl::string_view line : absl::StrSplit(*status, '\n')) {
    if (absl::ConsumePrefix(&line, "State:")) {
      stuck = absl::StripAsciiWhitespace(line).substr(0, 1) == "D";
    } else if (absl::ConsumePrefix(&line, "voluntary_ctxt_switches:") &&
               !absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &runs)) {
      return std::nullopt;
    }
  }
  return stuck ? std::optional(runs) : std::nullopt;
}

std::vector<pid_t> ThreadsOfThisProcess() {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/task", error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(entry.path().filename().native(), &thread)) threads.push_back(thread);
  }
  return threads;
}

pid_t OwnThread() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void Halt(int) {
  while (true) ::pause();
}

// What a thread waits for may come of ending the processes below: it must not go on with that.
void HaltOtherThreads() {
  struct sigaction halting {};
  halting.sa_handler = Halt;
  sigfillset(&halting.sa_mask);
  ::sigaction(SIGRTMIN, &halting, nullptr);
  for (const pid_t thread : ThreadsOfThisProcess()) {
    if (thread != OwnThread()) ::syscall(SYS_tgkill, ::getpid(), thread, SIGRTMIN);
  }
}

std::string WaitOf(pid_t thread) {
  const std::string place = base::ReadFile(FolderOf(thread) / "wchan", 256).value_or("");
  return place.empty() || place == "0" ? "" : absl::StrCat(" (", place, ")");
}

}  // namespace

absl::Duration HangLimit() {
  int seconds = 0;
  const char* const text = std::getenv("TUTTI_HANG_LIMIT");
  const bool given = text != nullptr && absl::SimpleAtoi(text, &seconds) && seconds > 0;
  return given ? absl::Seconds(seconds) : kDefaultLimit;
}

HangWatch::HangWatch(fs::path note, absl::Duration limit)
    : note_(std::move(note)), limit_(limit), thread_([this] { Run(); }) {}

HangWatch::~HangWatch() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void HangWatch::Run() {
  absl::MutexLock lock(&mutex_);
  // Counted in looks and not by a clock, which goes on while this process is stopped.
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ending_), limit_ / kLooks)) {
    if (const pid_t thread = Look(); thread != 0) End(thread);
  }
}

pid_t HangWatch::Look() {
  std::map<pid_t, Wait> waits;
  pid_t stuck = 0;
  for (const pid_t thread : ThreadsOfThisProcess()) {
    const std::optional<uint64_t> runs = RunsOfStuck(thread);
    if (!runs) continue;
    const auto before = waits_.find(thread);
    const bool is_same = before != waits_.end() && before->second.runs == *runs;
    const int looks = is_same ? before->second.looks + 1 : 1;
    waits[thread] = {*runs, looks};
    if (looks > kLooks) stuck = thread;
  }
  waits_ = std::move(waits);
  return stuck;
}

void HangWatch::End(pid_t thread) const {
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(kRecordingSeconds);
  RecordExitReason(
      note_,
      absl::StrCat("it was stuck in the kernel for ", absl::FormatDuration(limit_), WaitOf(thread),
                   " and ended itself: a file system or a device does not answer"));
  HaltOtherThreads();
  for (const pid_t below : base::Descendants(::getpid())) ::kill(below, SIGKILL);
  ::kill(::getpid(), SIGKILL);
}

}  // namespace tutti::launch
