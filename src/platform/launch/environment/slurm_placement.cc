#include "platform/launch/environment/slurm_placement.h"

#include <fcntl.h>
#include <netdb.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/tcp.h"
#include "spec/command/batch_options.h"

namespace tutti::launch {
namespace {

// Slurm warns a minute ahead, and is not exact about it.
constexpr absl::Duration kNearItsEnd = absl::Minutes(2);
constexpr absl::Duration kAnswers = absl::Seconds(5);  // meanwhile no output is taken

absl::StatusOr<std::string> NumericAddress(const std::string& host) {
  addrinfo wanted = {};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0) {
    return absl::NotFoundError(
        absl::StrCat("node ", host, " has no address: ", ::gai_strerror(error)));
  }
  std::string text = AddressText(*reinterpret_cast<sockaddr_in*>(found->ai_addr));
  ::freeaddrinfo(found);
  return text;
}

bool IsLoopback(absl::string_view address) { return absl::StartsWith(address, "127."); }

// Returns this machine's address on its way to another; "" if there is no way.
std::string OwnAddressTowards(const std::string& other) {
  absl::StatusOr<sockaddr_in> address = AddressOf(other, 9);
  const base::UniqueFd probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // nothing is sent
  if (!address.ok()) return "";
  socklen_t size = sizeof *address;
  auto* const generic = reinterpret_cast<sockaddr*>(&*address);
  if (::connect(probe.get(), generic, size) != 0 ||
      ::getsockname(probe.get(), generic, &size) != 0) {
    return "";
  }
  return AddressText(*address);
}

// Debian's images lead a machine's own name to its loopback, which the others would be told.
void LeaveLoopback(spec::LaunchPlan& plan) {
  std::string& own = plan.nodes[plan.node_index].address;
  const auto other = std::find_if(plan.nodes.begin(), plan.nodes.end(),
                                  [](const auto& node) { return !IsLoopback(node.address); });
  if (!IsLoopback(own) || other == plan.nodes.end()) return;
  if (std::string address = OwnAddressTowards(other->address); !address.empty()) {
    own = std::move(address);
  }
}

// The number that a variable begins with ("4(x2),3": tasks of each node); 0 if there is none.
int Leading(const std::map<std::string, std::string>& variables, const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return 0;
  const std::string& text = found->second;
  int number = 0;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return absl::SimpleAtoi(text.substr(0, digits), &number) ? number : 0;
}

}  // namespace

absl::Status ApplySlurmPlacement(absl::string_view gang, spec::LaunchPlan& plan) {
  const std::vector<std::string> entries = absl::StrSplit(gang, ';', absl::SkipEmpty());
  if (entries.size() != plan.nodes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the job has got ", entries.size(), " nodes, and its plan is for ", plan.nodes.size()));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(entries[i], ' ', absl::SkipEmpty());
    if (words.empty()) return absl::InvalidArgumentError("a node without a name");
    plan.nodes[i].name = words.front();
    absl::StatusOr<std::string> address = NumericAddress(words.back());
    const bool is_alone = entries.size() == 1 && words.size() == 1;
    if (!address.ok() && is_alone) address = "127.0.0.1";
    TUTTI_RETURN_IF_ERROR(address.status());
    plan.nodes[i].address = *std::move(address);
  }
  LeaveLoopback(plan);
  return absl::OkStatus();
}

namespace {

// When the job's time is up. From 23.02 on Slurm says it at the start; before, it is asked at the
// end, since jobs are not to wait for it, and for the start and the limit: of a job that it cancels
// it tells the end as now.
absl::Time EndTime() {
  int64_t seconds = 0;
  if (const char* const end = std::getenv("SLURM_JOB_END_TIME")) {
    return absl::SimpleAtoi(end, &seconds) ? absl::FromUnixSeconds(seconds)
                                           : absl::InfiniteFuture();
  }
  const char* const job = std::getenv("SLURM_JOB_ID");
  if (job == nullptr) return absl::InfiniteFuture();
  base::ChildOptions squeue;
  squeue.arguments = {"squeue", "--noheader", absl::StrCat("--jobs=", job), "--format=%S %l"};
  squeue.environment = base::CurrentEnvironment();
  squeue.environment["SLURM_TIME_FORMAT"] = "%s";
  const auto said = base::RunCommand(squeue, "", base::Deadline::After(kAnswers));
  if (!said.ok()) return absl::InfiniteFuture();
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripAsciiWhitespace(said->out), ' ', absl::SkipEmpty());
  absl::Duration limit;
  const bool is_known = words.size() == 2 && absl::SimpleAtoi(words[0], &seconds) &&
                        spec::ParseSlurmTime(words[1], limit);
  return is_known ? absl::FromUnixSeconds(seconds) + limit : absl::InfiniteFuture();
}

}  // namespace

bool IsStoppedByCluster(const std::filesystem::path& folder) {
  std::error_code error;
  return std::getenv("TUTTI_GANG") != nullptr &&
         !std::filesystem::exists(NodeFolders(folder).stop(), error);
}

void NoteStopRequest(const std::filesystem::path& folder) {
  if (!IsStoppedByCluster(folder)) return;
  const auto noted = base::Open(NodeFolders(folder).stop_requested(), O_WRONLY | O_CREAT);
  if (!noted.ok()) spdlog::warn("{}", noted.status().ToString());
}

absl::Status ReasonOfStopRequest(const std::filesystem::path& folder, absl::Time now) {
  if (!IsStoppedByCluster(folder)) return absl::OkStatus();
  const bool soon = now + kNearItsEnd >= EndTime();
  if (soon) {
    return absl::DeadlineExceededError("it has used up the time that it was given in Slurm");
  }
  return absl::CancelledError("it was cancelled or preempted in Slurm");
}

int AllocatedCores(const std::map<std::string, std::string>& variables, int own) {
  if (!variables.contains("TUTTI_GANG")) return own;
  const bool several = Leading(variables, "SLURM_TASKS_PER_NODE") > 1;
  const int of_a_task = several ? Leading(variables, "SLURM_CPUS_PER_TASK") : 0;
  const int given = of_a_task > 0 ? of_a_task : Leading(variables, "SLURM_CPUS_ON_NODE");
  return given > 0 ? std::min(given, own) : own;
}

int64_t AllocatedMemory(const std::map<std::string, std::string>& variables) {
  if (!variables.contains("TUTTI_GANG")) return 0;
  const int64_t of_node = Leading(variables, "SLURM_MEM_PER_NODE");
  const int64_t of_cores =
      int64_t{Leading(variables, "SLURM_MEM_PER_CPU")} * Leading(variables, "SLURM_CPUS_ON_NODE");
  return (of_node > 0 ? of_node : of_cores) << 20;
}

}  // namespace tutti::launch
