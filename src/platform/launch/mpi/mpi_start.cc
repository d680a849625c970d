#include "platform/launch/mpi/mpi_start.h"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/slurm_pmix.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// How long the launchers of a gang, all prepared, have to meet.
constexpr absl::Duration kMeeting = absl::Minutes(2);

fs::path ShortFolder(const spec::LaunchPlan& plan, const NodeFacts& facts) {
  return facts.temporary.empty() ? NodeFolders(plan.directory).scratch()
                                 : fs::path(facts.temporary);
}

absl::Status LinkThisProgram(const fs::path& folder) {
  const fs::path link = folder / kLauncherLink;
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  // One that was replaced since, as by an upgrade, is there by this process alone.
  if (!fs::exists(program, error)) program = absl::StrCat("/proc/", ::getpid(), "/exe");
  if (!error) fs::remove(link, error);
  if (!error) fs::create_symlink(program, link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

// What a rank's shim says is why it did not start it; mpirun says no more than that it ended.
std::string LastWordOfShims(const std::string& tail) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(tail, '\n')) {
    if (absl::StartsWith(line, "tutti: ")) last = std::string(line.substr(0, 300));
  }
  return last;
}

std::vector<int> SocketsOf(GangLink& link) {
  std::vector<int> sockets;
  for (const auto& [node, socket] : link.peers()) sockets.push_back(socket.fd());
  return sockets;
}

bool IsNamed(const spec::PlanNode& node, absl::string_view host) {
  const absl::string_view name = node.name;
  return name == host || node.address == host || name.substr(0, name.find('.')) == host;
}

}  // namespace

absl::StatusOr<MpiWorld> MpiStart::Agree(const spec::LaunchPlan& plan, const NodeFacts& facts,
                                         const std::atomic<bool>& cancelled) {
  MpiWorld world;
  if (!WantsMpi(plan)) return world;
  const bool may_use_pmix = MayUsePmix(plan, facts.own);
  const bool asks = may_use_pmix && plan.node_index == 0;
  std::string program = asks ? FindSrunWithPmix(facts.own, cancelled) : "";
  MpiWay own = MpiWay::kPmix;
  if (program.empty()) {
    program = FindOpenMpi(plan, EnvironmentOf(plan, 0, facts));
    own = program.empty() ? MpiWay::kNone : MpiWay::kMpirun;
  }
  // Before they meet: who is let in may come as soon as all have.
  std::optional<RankListener> listener;
  if (may_use_pmix || own != MpiWay::kNone) {
    TUTTI_RETURN_IF_ERROR(LinkThisProgram(ShortFolder(plan, facts)));
    TUTTI_ASSIGN_OR_RETURN(listener,
                           RankListener::Open(ShortFolder(plan, facts) / kLauncherSocketName));
  }
  // What the first node says of PMIx stands for all.
  if (plan.node_index == 0 && own != MpiWay::kPmix) {
    TUTTI_ASSIGN_OR_RETURN(world.pmi, PmiServer::Listen(plan));
  }
  const int pmi_port = world.pmi == nullptr ? 0 : world.pmi->port();
  TUTTI_ASSIGN_OR_RETURN(
      std::unique_ptr<GangLink> link,
      GangLink::Meet(plan, own, pmi_port, cancelled, base::Deadline::After(kMeeting)));
  if (link->way() == MpiWay::kNone || !listener) {
    world.pmi_address = absl::StrCat(PmiServer::AddressFor(plan), ":", link->pmi_port());
    if (world.pmi != nullptr) world.pmi->Serve(SocketsOf(*link));
    return world;
  }
  world.pmi.reset();
  world.start = std::unique_ptr<MpiStart>(
      new MpiStart(plan, facts, std::move(program), std::move(link), *std::move(listener)));
  return world;
}

absl::Status MpiStart::Begin(const ProcessLimit* limit, SpoolFile* words) {
  limit_ = limit;
  spool_ = words;
  if (plan_.node_index != 0) return absl::OkStatus();  // the first node will ask
  if (by_pmix()) return Run(SrunCommand(plan_, program_), SrunEnvironment(facts_.own));
  return Run(MpirunCommand(plan_, program_), EnvironmentOfStarter());
}

Variables MpiStart::EnvironmentOfStarter() const {
  const fs::path folder = ShortFolder(plan_, facts_);
  return StarterEnvironment(plan_, facts_, program_, (folder / kLauncherSocketName).string(),
                            folder.string());
}

absl::Status MpiStart::Run(std::vector<std::string> arguments, Variables environment) {
  if (was_started_ && !repeats_) {
    return absl::FailedPreconditionError("it has been started before");
  }
  TUTTI_ASSIGN_OR_RETURN(words_, OutputPipe::Open(spool_));
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.directory = NodeFolders(plan_.directory).work();
  options.stdout_fd = options.stderr_fd = words_->write_fd();
  options.die_with_parent = true;
  options.before_exec = [this] { return limit_->Enter(); };
  TUTTI_ASSIGN_OR_RETURN(starter_, base::ChildProcess::Start(options));
  ExpectNoMore();
  words_->CloseWriteEnd();
  return absl::OkStatus();
}

void MpiStart::AddTo(std::vector<pollfd>& waiting) const {
  listener_.AddTo(waiting);
  for (const auto& [node, socket] : link_->peers()) waiting.push_back({socket.fd(), POLLIN, 0});
}

std::vector<RankMessage> MpiStart::Take() {
  HearPeers();
  std::vector<RankMessage> news = listener_.Take();
  for (const RankMessage& item : news) {
    if (item.kind == RankMessage::Kind::kAgent) PassOn(item);
  }
  return news;
}

void MpiStart::PassOn(const RankMessage& wish) {
  auto& peers = link_->peers();
  for (auto& [node, socket] : peers) {
    if (!IsNamed(plan_.nodes[node], wish.host)) continue;
    const absl::Status sent = socket.Send({{"run", wish.command}});
    agents_[node] = wish.client;
    if (!sent.ok()) listener_.AnswerAgent(wish.client, std::string(sent.message()));
    return;
  }
  listener_.AnswerAgent(wish.client, "it is no node of this job");
}

void MpiStart::HearPeers() {
  auto& peers = link_->peers();
  for (auto peer = peers.begin(); peer != peers.end();) {
    auto message = peer->second.Take();
    while (message.ok() && *message) {
      HearPeer(peer->first, peer->second, **message);
      message = peer->second.Take();
    }
    peer = message.ok() ? std::next(peer) : peers.erase(peer);  // its launcher has ended
  }
}

void MpiStart::HearPeer(int node, LineSocket& socket, const json& message) {
  if (plan_.node_index == 0) {
    const auto error = message.find("error");
    const bool said = error != message.end() && error->is_string();
    listener_.AnswerAgent(agents_[node], said ? error->get<std::string>() : "no answer");
  } else if (const auto run = message.find("run"); run != message.end() && run->is_string()) {
    const absl::Status started =
        Run({"/bin/sh", "-c", run->get<std::string>()}, EnvironmentOfStarter());
    socket.Send({{"error", std::string(started.message())}}).IgnoreError();
  }
}

absl::Status MpiStart::StarterEnded() {
  const auto status = starter_->Wait(base::Deadline::After(absl::Seconds(1)));
  starter_.reset();
  words_->Pump(1 << 20).IgnoreError();
  if (status.ok() && status->ok()) return absl::OkStatus();
  std::string said = LastWordOfShims(words_->tail());
  if (said.empty()) said = LastError(words_->tail());
  if (by_pmix() && FoundNoController(words_->tail())) return absl::UnavailableError(said);
  if (const int rank = by_pmix() ? RankThatLeft(words_->tail()) : -1; rank >= 0) {
    return absl::AbortedError(absl::StrCat(
        "rank ", rank, " left MPI without MPI_Finalize, for which Slurm's PMIx ends the others"));
  }
  const auto code = by_pmix() && WasNotLaunched(words_->tail())
                        ? absl::StatusCode::kFailedPrecondition
                        : absl::StatusCode::kInternal;
  return absl::Status(code,
                      absl::StrCat(by_pmix()               ? "srun"
                                   : plan_.node_index == 0 ? "mpirun"
                                                           : "mpirun's daemon",
                                   " ended with ", status.ok() ? status->ToString() : "no status",
                                   said.empty() ? "" : ": ", said));
}

}  // namespace tutti::launch
