#include "platform/storage/storage_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "base/unique_fd.h"
#include "platform/storage/answer_reader.h"
#include "platform/storage/credential_mask.h"
#include "platform/storage/storage_json.h"

namespace tutti::storage {
namespace {

constexpr int kBetweenLooks = 50;        // ms, at whether it is cancelled
constexpr size_t kMostWords = 64 << 10;  // of what the program says beside its answer
constexpr size_t kShownWords = 500;

struct Pipe {
  base::UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::ErrnoStatus("pipe");
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// Returns the request as a file in memory, so that no disk has the credentials.
absl::StatusOr<base::UniqueFd> RequestInMemory(const StorageRequest& request) {
  base::UniqueFd file(::memfd_create("tutti-storage request", MFD_CLOEXEC));
  if (!file.valid()) return base::ErrnoStatus("memfd_create");
  TUTTI_RETURN_IF_ERROR(base::WriteAll(file.get(), ToJson(request), "a request"));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return base::ErrnoStatus("a request");
  return file;
}

// Running is a program that runs, and what it has said so far.
struct Running {
  base::ChildProcess process;
  base::UniqueFd out, err;
  std::string words;  // on standard error, its end
};

absl::StatusOr<Running> StartProgram(const std::filesystem::path& program,
                                     const StorageRequest& request, int lock) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd in, RequestInMemory(request));
  TUTTI_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  TUTTI_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  base::ChildOptions options;
  options.arguments = {program.string()};
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  options.stdin_fd = in.get();
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  options.die_with_parent = true;
  if (lock >= 0)
    options.before_exec = [lock] { return ::fcntl(lock, F_SETFD, 0) == 0 ? 0 : errno; };
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess process, base::ChildProcess::Start(options));
  return Running{std::move(process), std::move(out.read), std::move(err.read), ""};
}

// Reads what is there; false at the end of the stream.
absl::StatusOr<bool> TakeBytes(int fd, const std::function<absl::Status(absl::string_view)>& take) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  TUTTI_RETURN_IF_ERROR(take({buffer.data(), static_cast<size_t>(n)}));
  return true;
}

void KeepEnd(absl::string_view bytes, std::string& words) {
  words.append(bytes.data(), bytes.size());
  if (words.size() > 2 * kMostWords) words.erase(0, words.size() - kMostWords);
}

// A put that is cancelled has this time to abort at the store what it has begun.
constexpr absl::Duration kToGiveBack = absl::Seconds(10);

// Reads both streams to their ends.
absl::Status TakeAnswer(Running& running, AnswerReader& reader, base::Deadline deadline,
                        const std::atomic<bool>& cancelled,
                        absl::Duration longest_silence = absl::InfiniteDuration()) {
  absl::Duration heard = base::SteadyNow();
  std::array<pollfd, 2> streams = {pollfd{running.out.get(), POLLIN, 0},
                                   pollfd{running.err.get(), POLLIN, 0}};
  const std::array<std::function<absl::Status(absl::string_view)>, 2> takers = {
      [&](absl::string_view bytes) {
        heard = base::SteadyNow();
        return reader.Add(bytes);
      },
      [&](absl::string_view bytes) {
        KeepEnd(bytes, running.words);
        return absl::OkStatus();
      }};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (cancelled) return absl::CancelledError("tutti-storage was stopped");
    if (deadline.Expired()) return absl::DeadlineExceededError("tutti-storage took too long");
    if (base::SteadyNow() - heard > longest_silence) {
      return absl::DeadlineExceededError(absl::StrCat("tutti-storage has moved nothing for ",
                                                      absl::FormatDuration(longest_silence)));
    }
    const int wait = std::min(deadline.RemainingMillis(), kBetweenLooks);
    if (::poll(streams.data(), streams.size(), wait) <= 0) continue;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      TUTTI_ASSIGN_OR_RETURN(const bool more, TakeBytes(streams[i].fd, takers[i]));
      if (!more) streams[i].fd = -1;
    }
  }
  return absl::OkStatus();
}

// Takes what it says to its end, of what the store has.
void GiveBack(Running& running, AnswerReader& reader) {
  static const std::atomic<bool> never = false;
  if (!running.process.SignalGroup(SIGTERM).ok()) return;
  TakeAnswer(running, reader, base::Deadline::After(kToGiveBack), never).IgnoreError();
}

void Kill(base::ChildProcess& process) {
  process.SignalGroup(SIGKILL).IgnoreError();
  process.Wait(base::Deadline::After(base::kUnkillable)).IgnoreError();
}

// Returns what the program printed last, for an error without an answer.
std::string LastWords(const Running& running) {
  absl::string_view words = absl::StripAsciiWhitespace(running.words);
  if (words.size() > kShownWords) words.remove_prefix(words.size() - kShownWords);
  return words.empty() ? "" : absl::StrCat(": ", base::BoundedUtf8(words));
}

}  // namespace

absl::StatusOr<base::ChildProcess> StartStream(const std::filesystem::path& program,
                                               const StorageRequest& request,
                                               const std::filesystem::path& socket,
                                               const StreamHome& home) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd in, RequestInMemory(request));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd nowhere, base::Open("/dev/null", O_WRONLY));
  base::ChildOptions options;
  options.arguments = {program.string(), "stream",           "-", "--socket", socket.string(),
                       "--cache",        home.cache.string()};
  const auto add = [&](const char* name, const std::string& value) {
    options.arguments.insert(options.arguments.end(), {name, value});
  };
  if (home.most_bytes > 0) add("--most-bytes", absl::StrCat(home.most_bytes));
  if (!home.node.empty()) {
    add("--node", home.node);
    add("--nodes", absl::StrCat(home.nodes));
  }
  if (!home.list.empty()) add("--list", home.list.string());
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  options.stdin_fd = in.get();
  options.stdout_fd = options.stderr_fd = nowhere.get();
  return base::ChildProcess::Start(options);
}

absl::StatusOr<std::filesystem::path> StorageProgram() {
  std::filesystem::path program;
  if (const char* const named = std::getenv("TUTTI_STORAGE_PROGRAM")) {
    program = named;
  } else {
    std::error_code error;
    program =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / kStorageProgram;
  }
  if (::access(program.c_str(), X_OK) == 0) return program;
  return absl::FailedPreconditionError(absl::StrCat(
      "the program tutti-storage, which reads stores, is not at ", program.string(),
      ": build it with `tools/setup storage && tools/build tutti-storage`, or name it in "
      "TUTTI_STORAGE_PROGRAM"));
}

namespace {

absl::StatusOr<StorageResult> Run(const std::filesystem::path& program,
                                  const StorageRequest& request, base::Deadline deadline,
                                  const std::atomic<bool>& cancelled,
                                  const StorageListener& listener, int lock) {
  TUTTI_ASSIGN_OR_RETURN(Running running, StartProgram(program, request, lock));
  if (listener.began) listener.began(running.process.pid());
  AnswerReader reader(listener.progress);
  const absl::Status taken =
      TakeAnswer(running, reader, deadline, cancelled, listener.longest_silence);
  if (!taken.ok() && request.operation == Operation::kPut) GiveBack(running, reader);
  if (listener.object) {
    for (const StoredObject& object : reader.objects()) listener.object(object);
  }
  if (!taken.ok()) {
    Kill(running.process);
    return taken;
  }
  const absl::StatusOr<base::ExitStatus> exit = running.process.Wait(
      base::Deadline::Sooner(deadline, base::Deadline::After(listener.longest_silence)));
  if (!exit.ok()) {
    Kill(running.process);
    return exit.status();
  }
  absl::StatusOr<StorageResult> result = reader.Finish();
  if (!absl::IsInternal(result.status())) return result;
  return absl::InternalError(
      absl::StrCat(result.status().message(), " (", exit->ToString(), ")", LastWords(running)));
}

}  // namespace

// The program hides its secrets; libraries in it, and one that is not what it should be, may not.
absl::StatusOr<StorageResult> RunStorageWatched(const std::filesystem::path& program,
                                                const StorageRequest& request,
                                                base::Deadline deadline,
                                                const std::atomic<bool>& cancelled,
                                                const StorageListener& listener, int lock) {
  absl::StatusOr<StorageResult> result = Run(program, request, deadline, cancelled, listener, lock);
  if (result.ok()) return result;
  absl::Status hidden(result.status().code(),
                      MaskOf(request.credentials).Hide(result.status().message()));
  result.status().ForEachPayload(
      [&](absl::string_view kind, const absl::Cord& note) { hidden.SetPayload(kind, note); });
  return hidden;
}

absl::StatusOr<StorageResult> RunStorageAt(
    const std::filesystem::path& program, const StorageRequest& request, base::Deadline deadline,
    const std::atomic<bool>& cancelled, const std::function<void(const StorageProgress&)>& progress,
    int lock) {
  return RunStorageWatched(program, request, deadline, cancelled, {.progress = progress}, lock);
}

absl::StatusOr<StorageResult> RunStorage(
    const StorageRequest& request, base::Deadline deadline, const std::atomic<bool>& cancelled,
    const std::function<void(const StorageProgress&)>& progress, int lock) {
  TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path program, StorageProgram());
  return RunStorageAt(program, request, deadline, cancelled, progress, lock);
}

}  // namespace tutti::storage
