#include "platform/engine/slurm/slurm_commands.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::engine {
namespace {

struct Pipe {
  base::UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::ErrnoStatus("pipe");
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

std::map<std::string, std::string> EnvironmentOfCommands() {
  std::map<std::string, std::string> environment = base::CurrentEnvironment();
  std::erase_if(environment, [](const auto& entry) {
    const std::string& name = entry.first;
    return name != "SLURM_CONF" &&
           (absl::StartsWith(name, "SLURM_") || absl::StartsWith(name, "SLURMD_") ||
            absl::StartsWith(name, "SBATCH_") || absl::StartsWith(name, "SQUEUE_"));
  });
  return environment;
}

// Takes what is there; false at the end.
bool ReadSome(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), n);
  return n > 0 || (n < 0 && errno == EINTR);
}

// Both streams to their ends. False at the deadline.
bool ReadAll(int out, int err, base::Deadline deadline, CommandResult& result) {
  std::array<pollfd, 2> streams = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (deadline.Expired()) return false;
    ::poll(streams.data(), streams.size(), deadline.RemainingMillis());
    if (streams[0].fd >= 0 && streams[0].revents != 0 && !ReadSome(out, result.out)) {
      streams[0].fd = -1;
    }
    if (streams[1].fd >= 0 && streams[1].revents != 0 && !ReadSome(err, result.err)) {
      streams[1].fd = -1;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<CommandResult> RealSlurmCommands::Run(const std::vector<std::string>& arguments,
                                                     base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  TUTTI_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  base::ChildOptions options;
  options.arguments = arguments;
  options.environment = EnvironmentOfCommands();
  options.directory = "/";
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  options.die_with_parent = true;
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  out.write = base::UniqueFd();
  err.write = base::UniqueFd();
  CommandResult result;
  if (!ReadAll(out.read.get(), err.read.get(), deadline, result)) {
    child.SignalGroup(SIGKILL).IgnoreError();
    child.Wait(base::Deadline::After(absl::Seconds(5))).IgnoreError();
    return absl::DeadlineExceededError(absl::StrCat(arguments.front(), " did not answer in time"));
  }
  TUTTI_ASSIGN_OR_RETURN(result.exit, child.Wait(deadline));
  return result;
}

}  // namespace tutti::engine
