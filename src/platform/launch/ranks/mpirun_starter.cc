#include "platform/launch/ranks/mpirun_starter.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/lost_peer.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/environment/part_binding.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kProgramPatience = absl::Seconds(5);
// What mpirun says of a rank that failed is less than what that rank says itself, and a launcher
// that is told to end hears of it at about the same time.
constexpr absl::Duration kTogetherWithMpirun = absl::Milliseconds(200);

bool IsNamed(const spec::PlanNode& node, absl::string_view host) {
  const absl::string_view name = node.name;
  return name == host || node.address == host || name.substr(0, name.find('.')) == host;
}

}  // namespace

absl::Status MpirunStarter::Begin() {
  if (plan().node_index != 0) return absl::OkStatus();  // the first node's launcher will ask
  return StartProgram(MpirunCommand(plan(), agreement_.program), ProgramEnvironment());
}

void MpirunStarter::BeginStop(absl::Duration grace) {
  ExternalStarter::BeginStop(grace);
  if (supervisor().requested() && output() != nullptr) output()->KeepNoMore();
}

Variables MpirunStarter::ProgramEnvironment() const {
  const std::filesystem::path folder = SocketFolder(plan(), context_.facts);
  return StarterEnvironment(plan(), context_.facts, agreement_.program,
                            (folder / kLauncherSocketName).string(), folder.string());
}

void MpirunStarter::HandleMessage(const RankMessage& message) {
  RankProcess* const rank = ranks().Find(message.rank);
  if (message.kind == RankMessage::Kind::kRank) {
    if (absl::Status adopted = Adopt(message); !adopted.ok()) supervisor().Stop(adopted);
  } else if (message.kind == RankMessage::Kind::kAgent) {
    PassOn(message);
  } else if (message.kind == RankMessage::Kind::kFailed) {
    CouldNotStart(message);
  } else if (message.kind == RankMessage::Kind::kEnded && rank != nullptr && !rank->ended()) {
    if (!message.status.ok()) supervisor().AwaitCluster();
    ranks().End(*rank, message.status, supervisor().stopped());
  }
}

// A rank that mpirun has started asks what it is to run.
absl::Status MpirunStarter::Adopt(const RankMessage& message) {
  TUTTI_RETURN_IF_ERROR(ranks().CheckMayBegin(message.rank));
  const int local = message.rank - plan().node().first_rank;
  TUTTI_ASSIGN_OR_RETURN(auto rank, RankProcess::Adopt(plan(), local, message.pid, context_.spool));
  // Who asks is not yet the rank, which it starts.
  if (const int error = RankCores(plan(), local).Enter(message.pid); error != 0) {
    return base::ErrnoStatus(absl::StrCat("the processors of rank ", message.rank), error);
  }
  const auto& view = context_.facts.view;
  TUTTI_RETURN_IF_ERROR(
      agreement_.listener->SendStart(message.client, rank->out().write_fd(), rank->err().write_fd(),
                                     view ? view->descriptors() : std::vector<int>(),
                                     StartOf(plan(), local, context_.command, context_.facts)));
  rank->CloseWriteEnds();
  ranks().Add(std::move(rank));
  return absl::OkStatus();
}

void MpirunStarter::CouldNotStart(const RankMessage& message) {
  const std::string who = message.rank < 0 ? "a rank" : absl::StrCat("rank ", message.rank);
  supervisor().Stop(
      absl::InternalError(absl::StrCat(who, " could not be started: ", message.reason)));
  // Nothing else will tell of its end.
  RankProcess* const rank = ranks().Find(message.rank);
  if (rank != nullptr && !rank->ended()) ranks().End(*rank, {.code = kNotStarted}, true);
}

void MpirunStarter::PassOn(const RankMessage& request) {
  const auto& nodes = plan().nodes;
  const auto named = std::find_if(nodes.begin(), nodes.end(), [&](const spec::PlanNode& node) {
    return IsNamed(node, request.host);
  });
  if (named == nodes.end()) {
    return agreement_.listener->AnswerAgent(request.client, "it is no node of this job");
  }
  const int node = static_cast<int>(named - nodes.begin());
  auto& peers = agreement_.link->peers();
  const auto peer = peers.find(node);
  if (peer != peers.end() && peer->second.Send({{"run", request.command}}).ok()) {
    agents_[node] = request.client;
    return;
  }
  // That its launcher has gone is the cause, and not what mpirun makes of it.
  supervisor().Stop(absl::UnavailableError(
      absl::StrCat(base::kLostLauncher, named->name, " before the ranks were started")));
  agreement_.listener->AnswerAgent(request.client, "its launcher has ended");
}

// On the first node the answer of one that was asked, on the others what they are asked.
void MpirunStarter::HandlePeerMessage(int node, LineSocket& peer, const nlohmann::json& message) {
  if (plan().node_index == 0) {
    const auto error = message.find("error");
    const bool answers = error != message.end() && error->is_string();
    agreement_.listener->AnswerAgent(agents_[node],
                                     answers ? error->get<std::string>() : "no answer");
  } else if (const auto run = message.find("run"); run != message.end() && run->is_string()) {
    const absl::Status started =
        StartProgram({"/bin/sh", "-c", run->get<std::string>()}, ProgramEnvironment());
    peer.Send({{"error", std::string(started.message())}}).IgnoreError();
  }
}

void MpirunStarter::ProgramEnded(const StarterProgram::End& end) {
  if (end.ok || ranks().AnyFailed() || supervisor().stopped()) return;
  if (supervisor().StopIfRequested(kTogetherWithMpirun)) return;
  // A cluster that ends a job may tell the program before the launcher. A daemon whose mpirun has
  // gone ends without a word, and why mpirun has gone its own node knows.
  const bool alone = plan().node_index > 0 && absl::StripAsciiWhitespace(end.printed).empty();
  const auto code = end.told || alone ? absl::StatusCode::kCancelled : absl::StatusCode::kInternal;
  const std::string why = alone
                              ? absl::StrCat(" and said nothing, as when it loses mpirun on node ",
                                             plan().nodes.front().name)
                          : end.said.empty() ? ""
                                             : absl::StrCat(": ", end.said);
  const std::string reason = absl::StrCat(plan().node_index == 0 ? "mpirun" : "mpirun's daemon",
                                          " ended with ", end.status, why);
  // It gives up an mpirun that a loaded machine, or a signal, has kept from answering: with no rank
  // begun here the job itself is not at fault.
  if (alone && ranks().ranks().empty()) return supervisor().StopUnlaunched(reason);
  supervisor().Stop(absl::Status(code, reason));
}

void MpirunStarter::RanksAreMissing(const std::string& within, const std::string& error) {
  supervisor().Stop(absl::DeadlineExceededError(absl::StrCat(
      "mpirun started ", ranks().ranks().size(), " of the ", plan().node().process_count,
      " ranks of node ", plan().node().name, " within ", within, error)));
}

void MpirunStarter::OutputEnded() {
  if (output() != nullptr) ranks().ReportMpiFailure(MpiFailureIn(output()->tail()));
}

absl::Duration MpirunStarter::ProgramPatience(absl::Duration grace) const {
  return std::min(grace, kProgramPatience);
}

}  // namespace tutti::launch
