#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/client/doctor/checks.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/how_to_get.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// 0, or the errno of binding a TCP port; port 0: any.
int Bind(const char* address, int port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address, &place.sin_addr);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 ? 0 : errno;
}

std::string ErrorText(int error) { return std::string(base::ErrnoStatus("", error).message()); }

// MemAvailable of /proc/meminfo in bytes; 0 if it cannot be read.
uint64_t AvailableMemory() {
  const auto text = base::ReadFile("/proc/meminfo");
  if (!text.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::StartsWith(line, "MemAvailable:")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

int UnshareHostName() {
  if (::unshare(CLONE_NEWUTS) == 0) return 0;
  return ::unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0 ? 0 : errno;
}

// Its last words, as the loader's "error while loading shared libraries: …".
std::string WhyItDidNotStart(const base::CommandResult& result) {
  const std::string how = absl::StrCat("--help ends with ", result.exit.ToString());
  const absl::string_view said = absl::StripAsciiWhitespace(result.err);
  if (said.empty()) return how;
  const std::vector<absl::string_view> lines = absl::StrSplit(said, '\n');
  return absl::StrCat(how, ": ", lines.back());
}

}  // namespace

Check CheckHome(const DoctorSubject& subject) {
  Check check{"home", Check::Outcome::kOk, subject.home.string()};
  const fs::path folder = base::NearestThatIsThere(subject.home);
  const fs::path probe = folder / absl::StrCat(".tutti-doctor.", ::getpid());
  const absl::Status written = base::WriteFileAtomic(probe, "x");
  ::unlink(probe.c_str());
  if (written.ok()) return check;
  return {check.name, Check::Outcome::kFailed, std::string(written.message()),
          "make it writable, or choose another with --home FOLDER or TUTTI_HOME"};
}

Check CheckDisk(const DoctorSubject& subject) {
  const auto bytes = base::FreeBytes(base::NearestThatIsThere(subject.home));
  if (!bytes.ok()) {
    return {"disk", Check::Outcome::kFailed, std::string(bytes.status().message()),
            "choose another home with --home FOLDER"};
  }
  Check check{"disk", Check::Outcome::kOk, absl::StrCat(Bytes(*bytes), " free")};
  if (*bytes < subject.least_disk_bytes) {
    check.outcome = Check::Outcome::kFailed;
    check.remedy = absl::StrCat("free ", Bytes(subject.least_disk_bytes),
                                ": `tutti job delete` removes what old jobs have left");
  }
  return check;
}

Check CheckMemory(const DoctorSubject& subject) {
  const uint64_t bytes = AvailableMemory();
  Check check{"memory", Check::Outcome::kOk, absl::StrCat(Bytes(bytes), " available")};
  if (bytes < subject.least_memory_bytes) {
    check.outcome = Check::Outcome::kFailed;
    check.remedy = "end programs that hold memory, or serve with fewer --nodes";
  }
  return check;
}

// `tutti serve` takes as many as the hard limit allows. Three quarters of them are for connections,
// and three quarters of these for nodes (http/server).
Check CheckOpenFiles(const DoctorSubject& subject) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) {
    return {"files", Check::Outcome::kOk, "any number may be open"};
  }
  Check check{"files", Check::Outcome::kOk, absl::StrCat(limit.rlim_max, " may be open")};
  if (limit.rlim_max >= subject.least_open_files) return check;
  check.outcome = Check::Outcome::kWarning;
  absl::StrAppend(&check.detail, ": a service has connections for about ", limit.rlim_max * 9 / 16,
                  " nodes of clusters at a time");
  check.remedy =
      "for more, raise the hard limit of open files: LimitNOFILE= in the service's systemd unit, "
      "or "
      "nofile in /etc/security/limits.conf";
  return check;
}

Check CheckCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  Check check{"cores", Check::Outcome::kOk, absl::StrCat(cores)};
  if (cores < 2) {
    check.outcome = Check::Outcome::kWarning;
    check.remedy = "virtual nodes share one core: jobs run, slowly";
  }
  return check;
}

Check CheckProgram(const DoctorSubject& subject, const std::string& name) {
  const fs::path program = subject.program_folder / name;
  if (::access(program.c_str(), X_OK) != 0) {
    return {name, Check::Outcome::kWarning,
            absl::StrCat("not in ", subject.program_folder.string()),
            HowToGet(subject.program_folder, name)};
  }
  base::ChildOptions options;
  options.arguments = {program.string(), "--help"};
  options.environment = base::CurrentEnvironment();
  const auto ended = base::RunCommand(options, "", base::Deadline::After(absl::Seconds(20)));
  if (ended.ok() && ended->exit.ok()) return {name, Check::Outcome::kOk, "starts"};
  return {name, Check::Outcome::kFailed,
          ended.ok() ? WhyItDidNotStart(*ended) : std::string(ended.status().message()),
          HowToGet(subject.program_folder, name)};
}

Check CheckLoopback() {
  for (const char* address : {"127.77.0.1", "127.77.0.2"}) {
    if (const int error = Bind(address, 0); error != 0) {
      return {"loopback", Check::Outcome::kFailed,
              absl::StrCat(address, " cannot be bound", ErrorText(error)),
              "ip addr add 127.0.0.1/8 dev lo; ip link set lo up"};
    }
  }
  return {"loopback", Check::Outcome::kOk, "127.77.0.x can be bound"};
}

Check CheckNamespaces() {
  base::ChildOptions options;
  options.arguments = {"/bin/true"};
  options.before_exec = &UnshareHostName;
  auto child = base::ChildProcess::Start(options);
  const auto ended = child.ok() ? child->Wait(base::Deadline::After(absl::Seconds(10)))
                                : absl::StatusOr<base::ExitStatus>(child.status());
  if (ended.ok() && ended->ok()) {
    return {"namespaces", Check::Outcome::kOk, "virtual nodes have host names of their own"};
  }
  return {"namespaces", Check::Outcome::kWarning,
          absl::StrCat("not permitted: virtual nodes see this machine's host name (",
                       ended.ok() ? ended->ToString() : std::string(ended.status().message()), ")"),
          "sysctl -w kernel.unprivileged_userns_clone=1, or serve as root"};
}

Check CheckMasterPort() {
  const int error = Bind("127.77.0.1", 6105);
  if (error == 0) return {"port 6105", Check::Outcome::kOk, "free"};
  return {"port 6105", Check::Outcome::kWarning,
          absl::StrCat("taken", ErrorText(error), "; jobs get another MASTER_PORT"), ""};
}

}  // namespace tutti::client
