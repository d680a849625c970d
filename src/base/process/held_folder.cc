#include "base/process/held_folder.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/waiting.h"
#include "base/status.h"

namespace tutti::base {
namespace {

// A child that a killed process had just forked has its descriptors until it calls exec.
constexpr absl::Duration kUntilExec = absl::Seconds(5);
constexpr absl::Duration kTryLockEvery = absl::Milliseconds(20);

// "17 on host": a process of this machine that is no more.
bool HasEnded(absl::string_view holder) {
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(holder, absl::MaxSplits(" on ", 1));
  pid_t pid = 0;
  return words.second == HostName() && absl::SimpleAtoi(words.first, &pid) && pid > 0 &&
         ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

absl::StatusOr<UniqueFd> HoldFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  const Deadline until_exec = Deadline::After(kUntilExec);
  auto lock = LockFile(path, /*cancelled=*/true);  // does not wait
  while (absl::IsCancelled(lock.status())) {
    const auto text = ReadFile(path, 512);
    const std::string holder(text.ok() ? absl::StripAsciiWhitespace(*text) : "?");
    if (!HasEnded(holder) || until_exec.Expired()) {
      return absl::FailedPreconditionError(
          absl::StrCat("another service (process ", holder, ") holds ", folder.native(),
                       ": stop it first, or give this one another folder"));
    }
    absl::SleepFor(kTryLockEvery);
    lock = LockFile(path, /*cancelled=*/true);
  }
  TUTTI_RETURN_IF_ERROR(lock.status());
  const std::string holder = absl::StrCat(::getpid(), " on ", HostName(), "\n");
  // Over what stands there, whose block is there also when the disk is full. Who holds it is the
  // lock's matter; the name is for the next one's message.
  WriteAll(lock->get(), holder, path.native()).IgnoreError();
  Shorten(lock->get(), static_cast<int64_t>(holder.size()), path.native()).IgnoreError();
  return lock;
}

}  // namespace tutti::base
