#include "runtime/comm/group/reform.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/comm/group/group_file.h"
#include "runtime/comm/group/join.h"

namespace tutti::comm {
namespace {

absl::Status Validate(const ReformOptions& terms) {
  if (terms.min_ranks < 1 || terms.max_ranks < terms.min_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("re-form a group of ", terms.min_ranks, " to ", terms.max_ranks, " ranks"));
  }
  return absl::OkStatus();
}

// Newcomers read it: a place a line.
absl::Status WriteGroupFile(const Generation& line) {
  if (line.options.group_file.empty() || line.options.rank != 0) return absl::OkStatus();
  return base::WriteFileAtomic(line.options.group_file, GroupFileOf(line.table));
}

absl::Status LeftBehind(const Table& table) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the group has gone on without this rank, as generation ", table.generation, " of ",
      table.ranks.size(), " rank(s): it was taken for lost, and may come again as a newcomer"));
}

// `line` stands at the generation that `formed` is.
absl::StatusOr<std::unique_ptr<Communicator>> HandOver(Generation& line, Formed formed) {
  line.membership = formed.membership;
  if (line.membership != nullptr && line.options.rank == 0) {
    line.membership->ReportNewcomers(line.listener->waiting());
  }
  TUTTI_RETURN_IF_ERROR(WriteGroupFile(line));
  formed.group->SetGeneration(std::make_shared<Generation>(std::move(line)));
  return std::move(formed.group);
}

// `line` moves on to what was decided.
absl::Status MoveOn(Generation& line, const Table& table, const Hello& self) {
  if (!line.table.group.empty()) line.listener->Decide(line.table.group, table);
  const std::optional<int> place = RankIn(table, self);
  if (!place.has_value()) return LeftBehind(table);
  line.options.rank = *place;
  line.options.size = static_cast<int>(table.ranks.size());
  line.table = table;
  line.membership = nullptr;
  line.agreement.reset();
  line.listener->Enter(table, *place);
  return absl::OkStatus();
}

absl::StatusOr<ReformOutcome> Agree(Generation& line, const ReformOptions& terms, Hello self) {
  if (line.membership != nullptr) {
    const absl::Status left =
        line.membership->LeaveToReform(WithinHost(line.table, line.options.rank));
    if (!left.ok()) line.listener->Dismiss(left);
    TUTTI_RETURN_IF_ERROR(left);
  }
  self.rank = line.options.rank;
  self.size = line.options.size;
  absl::StatusOr<ReformOutcome> outcome = AgreeOnSuccessor(line, terms, self);
  if (!outcome.ok()) line.listener->Dismiss(outcome.status());
  return outcome;
}

}  // namespace

absl::StatusOr<RejoinIdentity> PrepareRejoin(const GroupOptions& options,
                                             const RejoinListener& listener) {
  RejoinIdentity identity;
  identity.self.rank = options.rank;
  identity.self.size = options.size;
  identity.self.node = options.node;
  identity.self.transport = options.transport;
  identity.self.rejoin_port = listener.port();
  TUTTI_ASSIGN_OR_RETURN(identity.listeners, OpenListeners(options, identity.self));
  return identity;
}

absl::StatusOr<std::unique_ptr<Communicator>> BecomeMember(Generation& line, ReformOutcome outcome,
                                                           RejoinIdentity identity,
                                                           const ReformOptions& terms) {
  while (true) {
    TUTTI_RETURN_IF_ERROR(MoveOn(line, outcome.table, identity.self));
    if (!outcome.controls.empty()) {
      auto formed = Form(line.options, {std::move(outcome.table), std::move(outcome.controls)},
                         std::move(identity.listeners), {});
      if (formed.ok()) return HandOver(line, *std::move(formed));
      // Somebody was lost meanwhile; or ranks want what cannot be, which would not change.
      if (absl::IsInvalidArgument(formed.status()) || absl::IsFailedPrecondition(formed.status())) {
        return formed.status();
      }
      spdlog::info("generation {} of the group did not connect and re-forms: {}",
                   line.table.generation, std::string(formed.status().message()));
    }
    TUTTI_ASSIGN_OR_RETURN(identity, PrepareRejoin(line.options, *line.listener));
    TUTTI_ASSIGN_OR_RETURN(outcome, Agree(line, terms, identity.self));
  }
}

absl::StatusOr<std::unique_ptr<Communicator>> JoinElastic(GroupOptions options) {
  if (options.address.empty()) {
    TUTTI_ASSIGN_OR_RETURN(options.address,
                           AddressToward({options.master_address, options.master_port}));
  }
  Generation line;
  TUTTI_ASSIGN_OR_RETURN(line.listener, RejoinListener::Open(options.address, options.token,
                                                             options.peer_timeout / 8));
  TUTTI_ASSIGN_OR_RETURN(RejoinIdentity identity, PrepareRejoin(options, *line.listener));
  RendezvousResult rendezvous{{base::RandomHex(16), {identity.self}}, {}};
  if (options.size > 1) {
    TUTTI_ASSIGN_OR_RETURN(rendezvous, Rendezvous(options, identity.self));
  }
  line.options = options;
  line.table = rendezvous.table;
  line.listener->Enter(line.table, options.rank);
  if (options.rank == 0) {
    line.listener->OpenAlsoAt({options.master_address, options.master_port}, options.address);
  }
  TUTTI_ASSIGN_OR_RETURN(Formed formed,
                         Form(options, std::move(rendezvous), std::move(identity.listeners), {}));
  return HandOver(line, std::move(formed));
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Reform(const ReformOptions& terms) {
  if (generation_ == nullptr) {
    return absl::FailedPreconditionError(
        "this group cannot re-form: it is not elastic (GroupOptions::elastic, TUTTI_ELASTIC=1)");
  }
  if (generation_->listener == nullptr) {
    return absl::FailedPreconditionError("this group has re-formed already");
  }
  TUTTI_RETURN_IF_ERROR(Validate(terms));
  TUTTI_ASSIGN_OR_RETURN(RejoinIdentity identity,
                         PrepareRejoin(generation_->options, *generation_->listener));
  TUTTI_ASSIGN_OR_RETURN(ReformOutcome outcome, Agree(*generation_, terms, identity.self));
  return BecomeMember(*generation_, std::move(outcome), std::move(identity), terms);
}

int Communicator::WaitingNewcomers() const {
  if (generation_ == nullptr || generation_->listener == nullptr) return 0;
  if (rank() == 0) return generation_->listener->waiting()->load();
  return generation_->membership->waiting();
}

int Communicator::generation() const {
  return generation_ == nullptr ? 0 : generation_->table.generation;
}

}  // namespace tutti::comm
