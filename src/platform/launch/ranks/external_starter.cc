#include "platform/launch/ranks/external_starter.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

// What the small program in a rank's place (launch-rank) prints is why it did not start the rank;
// mpirun says no more than that it ended.
std::string ErrorOfRankPrograms(const std::string& printed) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
    if (absl::StartsWith(line, "tutti: ")) last = std::string(line.substr(0, 300));
  }
  return last;
}

// Leaves out what Open MPI's programs tell on each node of a signal that they hand on: it is no
// error.
std::string WithoutNotices(const std::string& printed) {
  std::vector<absl::string_view> lines = absl::StrSplit(printed, '\n');
  const auto is_notice = [](absl::string_view line) {
    return absl::StrContains(line, "Forwarding signal ");
  };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_notice), lines.end());
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::Status StarterProgram::Start(std::vector<std::string> arguments, Variables environment) {
  TUTTI_ASSIGN_OR_RETURN(output_, OutputPipe::Open(spool_));
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.directory = directory_;
  options.stdout_fd = options.stderr_fd = output_->write_fd();
  options.die_with_parent = true;
  options.before_exec = [this] { return limit_.Enter(); };
  TUTTI_ASSIGN_OR_RETURN(child_, base::ChildProcess::Start(options));
  output_->CloseWriteEnd();
  return absl::OkStatus();
}

StarterProgram::End StarterProgram::Reap() {
  const auto status = child_->Wait(base::Deadline::After(absl::Seconds(1)));
  child_.reset();
  output_->ReadLast(1 << 20);
  End end{.ok = status.ok() && status->ok(),
          .told = status.ok() && status->signal == SIGTERM,
          .status = status.ok() ? status->ToString()
                                : absl::StrCat("a status that could not be read: ",
                                               status.status().message()),
          .printed = WithoutNotices(output_->tail())};
  end.said = ErrorOfRankPrograms(end.printed);
  if (end.said.empty()) end.said = LastError(end.printed);
  return end;
}

std::string StarterProgram::ErrorSoFar() const {
  const std::string error = output_ ? LastError(output_->tail()) : "";
  return error.empty() ? "" : absl::StrCat(": ", error);
}

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
