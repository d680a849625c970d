#include "platform/launch/ranks/external_starter.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {

ExternalStarter::ExternalStarter(const StartContext& context, MpiAgreement agreement)
    : context_(context),
      agreement_(std::move(agreement)),
      program_(context.limit, &context.spool->Mpirun(),
               NodeFolders(context.plan.directory).work().string()),
      rank_start_limit_(base::Deadline::After(context.options.rank_start_limit)),
      program_patience_(base::Deadline::After(absl::ZeroDuration())) {}

absl::Status ExternalStarter::StartProgram(std::vector<std::string> arguments,
                                           Variables environment) {
  if (!expects_start_) return absl::FailedPreconditionError("it has been started before");
  TUTTI_RETURN_IF_ERROR(program_.Start(std::move(arguments), std::move(environment)));
  expects_start_ = false;
  return absl::OkStatus();
}

void ExternalStarter::AddTo(std::vector<pollfd>& waiting) const {
  agreement_.listener->AddTo(waiting);
  for (const auto& [node, peer] : agreement_.link->peers()) {
    waiting.push_back({peer.fd(), POLLIN, 0});
  }
}

void ExternalStarter::HandleMessages() {
  HandlePeerMessages();
  for (const RankMessage& message : agreement_.listener->Take()) {
    RankProcess* const rank = ranks().Find(message.rank);
    if (message.kind == RankMessage::Kind::kTerminating && rank != nullptr) {
      supervisor().ReapChildren();  // who has ended by now was not asked to
      rank->NoteStopRequest();
    } else {
      HandleMessage(message);
    }
  }
}

void ExternalStarter::HandlePeerMessages() {
  auto& peers = agreement_.link->peers();
  for (auto peer = peers.begin(); peer != peers.end();) {
    auto message = peer->second.Take();
    while (message.ok() && *message) {
      HandlePeerMessage(peer->first, peer->second, **message);
      message = peer->second.Take();
    }
    peer = message.ok() ? std::next(peer) : peers.erase(peer);  // its launcher has ended
  }
}

// The launcher that was to bring the ranks has ended before it did.
bool ExternalStarter::IsCutOff() const {
  return plan().node_index != 0 && expects_start_ && agreement_.link->peers().empty();
}

absl::Duration ExternalStarter::UntilNextTask() const {
  if (supervisor().ending()) return absl::InfiniteDuration();
  absl::Duration wait = absl::InfiniteDuration();
  if (AwaitsRanks()) wait = rank_start_limit_.Remaining();
  if (alone_limit_) wait = std::min(wait, alone_limit_->Remaining());
  return wait;
}

void ExternalStarter::RunDueTasks() {
  HoldAloneLimit();
  HoldRankStartLimit();
}

void ExternalStarter::HoldAloneLimit() {
  if (supervisor().ending() || !IsCutOff()) return;
  if (!alone_limit_) alone_limit_ = base::Deadline::After(context_.options.alone_limit);
  if (!alone_limit_->Expired()) return;
  supervisor().StopUnlaunched(absl::StrCat("the launcher of node ", plan().nodes.front().name,
                                           " has ended, which was to begin its ranks"));
}

void ExternalStarter::HoldRankStartLimit() {
  if (!AwaitsRanks() || !rank_start_limit_.Expired()) return;
  RanksAreMissing(absl::FormatDuration(context_.options.rank_start_limit), program_.ErrorSoFar());
}

bool ExternalStarter::ReapIfOwn(pid_t pid) {
  if (program_.pid() != pid) return false;
  HandleMessages();
  // HandleMessages may have reaped the program.
  if (program_.pid() == pid) ProgramEnded(program_.Reap());
  return true;
}

void ExternalStarter::BeginStop(absl::Duration grace) {
  expects_start_ = false;
  program_patience_ = base::Deadline::After(ProgramPatience(grace));
}

// mpirun and its daemon end by themselves when ranks do, and Open MPI's crash if they are told to
// meanwhile. So at first only what is below the ranks is told. srun too ends by itself, and takes
// the ranks' PMIx with it, which they may need as long as they have their grace.
std::set<pid_t> ExternalStarter::Spared() const {
  if (!program_.runs() || ranks().ranks().empty() || program_patience_.Expired()) return {};
  std::set<pid_t> of_ranks;
  for (const auto& rank : ranks().ranks()) of_ranks.insert(rank->pid());
  const std::vector<pid_t> starters = base::Descendants(program_.pid(), of_ranks);
  std::set<pid_t> spared(starters.begin(), starters.end());
  spared.insert(program_.pid());
  return spared;
}

}  // namespace tutti::launch
