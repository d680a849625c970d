#include "local_ranks.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti {
namespace {

constexpr absl::Duration kPatience = absl::Hours(24);

absl::StatusOr<int> FreePort() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (socket.get() < 0 || bind(socket.get(), any, size) != 0 ||
      getsockname(socket.get(), any, &size) != 0) {
    return base::ErrnoStatus("a port of 127.0.0.1");
  }
  return ntohs(address.sin_port);
}

base::ChildOptions RankOptions(int rank, int ranks, int port, char** argv) {
  base::ChildOptions options;
  options.arguments = {"/proc/self/exe"};
  for (char** word = argv + 1; *word != nullptr; ++word) options.arguments.emplace_back(*word);
  options.environment = base::CurrentEnvironment();
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"RANK", absl::StrCat(rank)},
                                          {"WORLD_SIZE", absl::StrCat(ranks)},
                                          {"LOCAL_RANK", absl::StrCat(rank)},
                                          {"LOCAL_WORLD_SIZE", absl::StrCat(ranks)},
                                          {"NODE_RANK", "0"},
                                          {"MASTER_ADDR", "127.0.0.1"},
                                          {"MASTER_PORT", absl::StrCat(port)},
                                          {"TUTTI_NODE_ADDRESS", "127.0.0.1"}}) {
    options.environment[name] = value;
  }
  options.die_with_parent = true;
  return options;
}

}  // namespace

int CoresOfThisProcess() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

absl::StatusOr<int> RunLocalRanks(int ranks, char** argv) {
  TUTTI_ASSIGN_OR_RETURN(const int port, FreePort());
  std::vector<base::ChildProcess> children;
  for (int rank = 0; rank < ranks; ++rank) {
    TUTTI_ASSIGN_OR_RETURN(auto child,
                           base::ChildProcess::Start(RankOptions(rank, ranks, port, argv)));
    children.push_back(std::move(child));
  }
  int worst = 0;
  for (base::ChildProcess& child : children) {
    TUTTI_ASSIGN_OR_RETURN(const base::ExitStatus end,
                           child.Wait(base::Deadline::After(kPatience)));
    worst = std::max(worst, end.signal != 0 ? 128 + end.signal : end.code);
  }
  return worst;
}

}  // namespace tutti
