#include "platform/launch/launch_programs.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "base/process/read_only_view.h"
#include "base/status.h"
#include "platform/container/job_containers.h"
#include "platform/launch/delivery/collector.h"
#include "platform/launch/mpi/rank_listener.h"
#include "platform/launch/mpi/slurm_pmix.h"
#include "platform/launch/node/claim.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/program_names.h"
#include "platform/launch/process/process_name.h"
#include "platform/launch/ranks/rank_process.h"
#include "platform/launch/standby.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr absl::Duration kAnswer = absl::Minutes(2);  // on a machine that is busy
constexpr unsigned kBeginning = 150;                  // seconds, answers included
constexpr absl::Duration kForever = absl::Hours(24 * 365);

base::Deadline AnswerDeadline() { return base::Deadline::After(kAnswer); }

absl::StatusOr<LineSocket> ToLauncher() {
  const char* const socket = std::getenv(kLauncherSocketVariable);
  if (socket == nullptr) return absl::FailedPreconditionError("started by no launcher");
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, ConnectToLauncher(socket));
  return LineSocket(std::move(fd));
}

bool IsOfMpirun(absl::string_view name) {
  return absl::StartsWith(name, "OMPI_") || absl::StartsWith(name, "PMIX_") ||
         name == "OPAL_PREFIX";
}

// Returns the variables that the launcher has set, over those of mpirun's daemon.
std::map<std::string, std::string> Environment(const json& start) {
  auto variables = start.at("environment").get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : base::CurrentEnvironment()) {
    if (IsOfMpirun(name)) variables.try_emplace(name, value);
  }
  return variables;
}

absl::StatusOr<base::ChildProcess> StartRank(LineSocket& launcher, int rank) {
  TUTTI_RETURN_IF_ERROR(launcher.Send({{"kind", "rank"}, {"rank", rank}, {"pid", ::getpid()}}));
  TUTTI_ASSIGN_OR_RETURN(std::vector<base::UniqueFd> fds,
                         ReceiveFds(launcher.fd(), 3, AnswerDeadline()));
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         base::ReadFile(absl::StrCat("/proc/self/fd/", fds[2].get()), 64 << 20));
  std::vector<base::UniqueFd> namespaces(std::make_move_iterator(fds.begin() + 3),
                                         std::make_move_iterator(fds.end()));
  const base::ReadOnlyView view(std::move(namespaces));
  try {
    const json start = json::parse(text);
    base::ChildOptions options;
    options.arguments = start.at("arguments").get<std::vector<std::string>>();
    options.environment = Environment(start);
    options.directory = start.at("directory").get<std::string>();
    options.stdout_fd = fds[0].get();
    options.stderr_fd = fds[1].get();
    options.die_with_parent = true;
    options.before_exec = [&view, &options] {
      PreferAsOutOfMemoryVictim();
      return view.Enter(options.directory.c_str());
    };
    return base::ChildProcess::Start(options);
  } catch (const json::exception& error) {
    return absl::InternalError(error.what());
  }
}

// Until the process has ended. Hands SIGTERM on; ends the process if the launcher goes.
base::ExitStatus AwaitRank(base::ChildProcess& child, LineSocket& launcher, int signals) {
  bool launcher_there = true;
  while (true) {
    pollfd waiting[3] = {{child.pidfd(), POLLIN, 0},
                         {signals, POLLIN, 0},
                         {launcher_there ? launcher.fd() : -1, POLLIN, 0}};
    ::poll(waiting, 3, -1);
    signalfd_siginfo info;
    if (::read(signals, &info, sizeof info) == sizeof info) {
      launcher.Send({{"kind", "stop-requested"}}).IgnoreError();
      child.SignalGroup(static_cast<int>(info.ssi_signo)).IgnoreError();
    }
    if (waiting[2].revents != 0 && !launcher.Take().ok()) {
      launcher_there = false;
      child.SignalGroup(SIGKILL).IgnoreError();
    }
    const auto ended = child.Wait(base::Deadline::After(absl::ZeroDuration()));
    if (ended.ok()) return *ended;
  }
}

int PrintError(const absl::Status& status) {
  std::fprintf(stderr, "tutti: %s\n", std::string(status.message()).c_str());
  return kNotStarted;
}

// As a shell says it.
int CodeOf(base::ExitStatus status) {
  return status.signal == 0 ? status.code : 128 + status.signal;
}

absl::StatusOr<base::UniqueFd> BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  base::UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return base::ErrnoStatus("signalfd");
  return signals;
}

int RunRank() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // with the daemon that started it
  ::alarm(kBeginning);                 // SIGALRM ends it: its launcher hears that no rank began
  const absl::StatusOr<base::UniqueFd> signals = BlockSignals();
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  absl::StatusOr<LineSocket> launcher = ToLauncher();
  if (!launcher.ok()) return PrintError(launcher.status());
  const int number = rank == nullptr ? -1 : std::atoi(rank);
  auto child = signals.ok() ? StartRank(*launcher, number) : signals.status();
  if (!child.ok()) {
    launcher->Send({{"kind", "failed"}, {"reason", std::string(child.status().message())}})
        .IgnoreError();
    return PrintError(child.status());
  }
  launcher->Send({{"kind", "begun"}}).IgnoreError();
  ::alarm(0);
  const base::ExitStatus status = AwaitRank(*child, *launcher, signals->get());
  launcher->Send({{"kind", "ended"}, {"code", status.code}, {"signal", status.signal}})
      .IgnoreError();
  // Until it has been taken: mpirun ends the others once this process has gone.
  launcher->Receive(base::Deadline::After(absl::Seconds(5))).IgnoreError();
  return CodeOf(status);
}

int RunAgent(const std::string& host, const std::string& command) {
  absl::StatusOr<LineSocket> launcher = ToLauncher();
  if (!launcher.ok()) return PrintError(launcher.status());
  const absl::Status asked =
      launcher->Send({{"kind", "agent"}, {"host", host}, {"command", command}});
  if (!asked.ok()) return PrintError(asked);
  const absl::StatusOr<json> answer = launcher->Receive(AnswerDeadline());
  if (!answer.ok()) return PrintError(answer.status());
  const std::string error = answer->value("error", "the launcher gave no answer");
  return error.empty() ? 0 : PrintError(absl::InternalError(absl::StrCat(host, ": ", error)));
}

int RunPmixTask() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Who is told to end is the rank; it may still need its PMIx.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_IGN);
  const char* const rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) return PrintError(absl::FailedPreconditionError("Slurm offers no PMIx"));
  absl::StatusOr<LineSocket> launcher = ToLauncher();
  if (!launcher.ok()) return PrintError(launcher.status());
  const absl::Status sent =
      launcher->Send({{"kind", "pmix-task"},
                      {"rank", std::atoi(rank)},
                      {"variables", PmixVariablesOf(base::CurrentEnvironment())}});
  if (!sent.ok()) return PrintError(sent);
  const absl::StatusOr<json> ended = launcher->Receive(base::Deadline::After(kForever));
  if (!ended.ok()) return 1;  // the launcher has gone, and the rank with it
  return CodeOf({.code = ended->value("code", 1), .signal = ended->value("signal", 0)});
}

int RunCollectorProgram(const std::string& folder, const std::string& service_file) {
  base::StartLogging("info");
  const absl::Status status = RunCollector(folder, service_file);
  if (!status.ok()) spdlog::error("{}", status.ToString());
  return status.ok() ? 0 : 1;
}

// With the lock that a launcher has: the containers of one that lives are its own.
absl::Status RemoveLeft(const NodeFolders& folders) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, TakeLock(folders));
  return container::RemoveLeftContainers(folders.root, /*cancelled=*/false);
}

int RunRemover(const std::string& folder) {
  // A script that is told to end hands that on; it ends once this has.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_IGN);
  base::StartLogging("info");
  const absl::Status status = RemoveLeft(NodeFolders(folder));
  if (!status.ok()) {
    spdlog::error("the containers of {} cannot be removed: {}", folder, status.ToString());
  }
  return status.ok() ? 0 : 1;
}

}  // namespace

std::optional<int> RunLaunchProgram(int argc, const char* const* argv) {
  if (argc < 2) return std::nullopt;
  const std::string program = argv[1];
  if (program == kStandbyProgram) {
    return RunStandby(argc > 2 ? argv[2] : "", [argc, argv](const std::string& plan) {
      NameProcess(argc, argv, {"tutti", "launch", "--plan"}, plan);
    });
  }
  if (program == kCollectorProgram && argc > 3) return RunCollectorProgram(argv[2], argv[3]);
  if (program == kRemoverProgram && argc > 2) return RunRemover(argv[2]);
  if (program == kRankProgram) return RunRank();
  if (program == kPmixTaskProgram) return RunPmixTask();
  if (program != kAgentProgram) return std::nullopt;
  if (argc < 4) return PrintError(absl::InvalidArgumentError("launch-agent needs HOST COMMAND"));
  return RunAgent(argv[2], absl::StrJoin(argv + 3, argv + argc, " "));
}

}  // namespace tutti::launch
