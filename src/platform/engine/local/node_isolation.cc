#include "platform/engine/local/node_isolation.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/child_process.h"

namespace tutti::engine {
namespace {

// Everything that EnterNode needs, made before the fork: after it no memory may be asked for.
struct Prepared {
  std::string host_name, hosts_file, uid_map, gid_map;
  cpu_set_t cores;
  bool has_cores = false;
  Isolation isolation;
};

int WriteText(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

// Same user and group inside as outside.
int EnterUserNamespace(const Prepared& prepared) {
  if (::unshare(CLONE_NEWUSER) != 0) return errno;
  if (const int error = WriteText("/proc/self/setgroups", "deny"); error != 0) return error;
  if (const int error = WriteText("/proc/self/uid_map", prepared.uid_map); error != 0) return error;
  return WriteText("/proc/self/gid_map", prepared.gid_map);
}

int EnterNamespaces(const Prepared& prepared) {
  if (prepared.isolation == Isolation::kUserNamespace) {
    if (const int error = EnterUserNamespace(prepared); error != 0) return error;
  }
  if (::unshare(CLONE_NEWUTS | CLONE_NEWNS) != 0) return errno;
  // A later mount outside still comes in; a mount made here does not get out.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return errno;
  if (::mount(prepared.hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
    return errno;
  }
  return ::sethostname(prepared.host_name.data(), prepared.host_name.size()) == 0 ? 0 : errno;
}

int Enter(const Prepared& prepared) {
  if (prepared.has_cores && ::sched_setaffinity(0, sizeof prepared.cores, &prepared.cores) != 0) {
    return errno;
  }
  return prepared.isolation == Isolation::kNone ? 0 : EnterNamespaces(prepared);
}

}  // namespace

std::function<int()> EnterNode(const NodeSettings& node, Isolation isolation) {
  Prepared prepared;
  prepared.host_name = node.host_name;
  prepared.hosts_file = node.hosts_file.string();
  prepared.uid_map = absl::StrCat(::getuid(), " ", ::getuid(), " 1");
  prepared.gid_map = absl::StrCat(::getgid(), " ", ::getgid(), " 1");
  prepared.isolation = isolation;
  CPU_ZERO(&prepared.cores);
  for (const int core : node.cores) CPU_SET(core, &prepared.cores);
  prepared.has_cores = !node.cores.empty();
  return [prepared] { return Enter(prepared); };
}

Isolation ProbeIsolation(const std::filesystem::path& hosts_file) {
  for (const Isolation isolation : {Isolation::kFull, Isolation::kUserNamespace}) {
    base::ChildOptions options;
    options.arguments = {"/bin/true"};
    options.before_exec = EnterNode({"probe", {}, hosts_file}, isolation);
    absl::StatusOr<base::ChildProcess> child = base::ChildProcess::Start(options);
    if (!child.ok()) continue;
    const auto ended = child->Wait(base::Deadline::After(absl::Seconds(10)));
    if (ended.ok() && ended->ok()) return isolation;
  }
  return Isolation::kNone;
}

std::string HostsFile(absl::string_view base,
                      const std::vector<std::pair<std::string, std::string>>& name_and_address) {
  std::string text;
  for (const auto& [name, address] : name_and_address)
    absl::StrAppend(&text, address, " ", name, "\n");
  for (const absl::string_view line : absl::StrSplit(base, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const bool names_a_node = std::any_of(words.begin(), words.end(), [&](absl::string_view word) {
      return std::any_of(name_and_address.begin(), name_and_address.end(),
                         [&](const auto& node) { return node.first == word; });
    });
    if (!names_a_node) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace tutti::engine
