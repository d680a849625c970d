#include "platform/container/podman.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/waiting.h"
#include "base/status.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr off_t kMostRead = 1 << 20;  // of what podman says, which may be all that a build prints
constexpr size_t kLongestLine = 400;
constexpr absl::Duration kPatienceForALook = absl::Minutes(5);

std::string InOneLine(absl::string_view text) {
  std::string line =
      absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty()), " ");
  if (line.size() > kLongestLine) line = absl::StrCat(line.substr(0, kLongestLine), "…");
  return line;
}

// Returns whether podman reports its own progress in a line, which no step has printed.
bool IsPodmans(absl::string_view line) {
  return absl::StartsWith(line, "STEP ") || absl::StartsWith(line, "-->") ||
         absl::StartsWith(line, "time=\"") || absl::StartsWith(line, "Trying to pull ") ||
         absl::StartsWith(line, "COMMIT ");
}

std::string LimitOption(absl::string_view name, int resource, rlim_t most) {
  rlimit own{};
  ::getrlimit(static_cast<__rlimit_resource_t>(resource), &own);
  const rlim_t hard = std::min(own.rlim_max, most);
  return absl::StrCat("--ulimit=", name, "=", std::min(own.rlim_cur, hard), ":", hard);
}

// podman lowers its own limit to that.
rlim_t LargestProcessNumber() {
  const auto text = base::ReadFile("/proc/sys/kernel/pid_max", 64);
  uint64_t number = 0;
  return text.ok() && absl::SimpleAtoi(*text, &number) ? number : 32768;
}

// Returns the end of what a file of ours has.
absl::StatusOr<std::string> EndOf(int fd) {
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size < 0) return base::ErrnoStatus("podman's words");
  std::string text(static_cast<size_t>(std::min(size, kMostRead)), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  if (got < 0) return base::ErrnoStatus("podman's words");
  text.resize(static_cast<size_t>(got));
  return text;
}

// Returns the error of the disk that podman's output should have gone to, which it cannot report
// there.
absl::Status TakesWords(int fd, const fs::path& log) {
  const std::string block(4096, '\n');
  const off_t end = ::lseek(fd, 0, SEEK_END);
  const ssize_t written = ::pwrite(fd, block.data(), block.size(), end);
  if (written == static_cast<ssize_t>(block.size())) return base::Shorten(fd, end, log.native());
  return written < 0 ? base::ErrnoStatus(log.native()) : base::ErrnoStatus(log.native(), ENOSPC);
}

absl::Status Failure(base::ExitStatus ended, absl::string_view said) {
  const std::string reason = ErrorIn(said);
  return absl::FailedPreconditionError(
      reason.empty() ? absl::StrCat("podman ended with ", ended.ToString()) : reason);
}

}  // namespace

absl::StatusOr<std::string> FindPodman() {
  auto program = base::FindProgram("podman", base::CurrentEnvironment());
  if (program.ok()) return program;
  return absl::NotFoundError(
      "podman, which runs images, is not on this machine: install it (apt-get install podman), or "
      "say in site.yml which packages stand for the image");
}

absl::StatusOr<std::string> RunPodman(const std::vector<std::string>& arguments,
                                      const fs::path& log, const std::atomic<bool>& cancelled,
                                      const std::map<std::string, std::string>& variables) {
  TUTTI_ASSIGN_OR_RETURN(const std::string program, FindPodman());
  const fs::path output = absl::StrCat(log.string(), ".out");
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd out, base::Open(output, O_RDWR | O_CREAT | O_TRUNC));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd words, base::Open(log, O_RDWR | O_CREAT | O_TRUNC));
  base::ChildOptions options{.arguments = {program}, .environment = base::CurrentEnvironment()};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  for (const auto& [name, value] : variables) options.environment[name] = value;
  options.stdout_fd = out.get();
  options.stderr_fd = words.get();
  options.die_with_parent = true;
  const auto run = base::RunToEnd(options, cancelled);
  std::error_code error;
  fs::remove(output, error);  // it is read by its descriptor
  TUTTI_ASSIGN_OR_RETURN(const base::ExitStatus ended, run);
  if (!ended.ok()) {
    TUTTI_ASSIGN_OR_RETURN(const std::string said, EndOf(words.get()));
    TUTTI_RETURN_IF_ERROR(TakesWords(words.get(), log));
    return Failure(ended, said);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, EndOf(out.get()));
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

absl::StatusOr<std::string> InspectImage(const std::string& name, const std::string& format,
                                         const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(
      const base::CommandResult found,
      AskPodman({"image", "inspect", "--format", format, name}, kPatienceForALook, cancelled));
  if (found.exit.ok()) return std::string(absl::StripTrailingAsciiWhitespace(found.out));
  if (absl::StrContains(found.err, "image not known")) return absl::NotFoundError(name);
  return Failure(found.exit, found.err);
}

absl::StatusOr<std::string> LookUpImage(const std::string& name,
                                        const std::atomic<bool>& cancelled) {
  return InspectImage(name, "{{.Id}}", cancelled);
}

uint64_t SizeOfImage(const std::string& id, const std::atomic<bool>& cancelled) {
  const auto size = InspectImage(id, "{{.Size}}", cancelled);
  uint64_t bytes = 0;
  return size.ok() && absl::SimpleAtoi(*size, &bytes) ? bytes : 0;
}

absl::StatusOr<base::CommandResult> AskPodman(std::vector<std::string> arguments,
                                              absl::Duration patience,
                                              const std::atomic<bool>& cancelled, size_t most) {
  TUTTI_ASSIGN_OR_RETURN(const std::string program, FindPodman());
  arguments.insert(arguments.begin(), program);
  const base::ChildOptions options{.arguments = std::move(arguments),
                                   .environment = base::CurrentEnvironment()};
  return base::RunCommand(options, "", base::Deadline::After(patience), most, &cancelled);
}

std::string ErrorIn(absl::string_view words) {
  std::string error, before;
  for (const absl::string_view line : absl::StrSplit(words, '\n', absl::SkipEmpty())) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "Error: ")) {
      error = InOneLine(rest);
    } else if (!IsPodmans(line) && error.empty()) {
      before = InOneLine(line);
    }
  }
  if (error.empty()) return before;
  return before.empty() ? error : absl::StrCat(before, " (", error, ")");
}

std::vector<std::string> LimitOptions() {
  return {LimitOption("nofile", RLIMIT_NOFILE, RLIM_INFINITY),
          LimitOption("nproc", RLIMIT_NPROC, LargestProcessNumber())};
}

}  // namespace tutti::container
