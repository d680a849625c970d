#include "runtime/comm/rendezvous/membership/reform_agreement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::comm {

bool HasQuorum(int size, const std::set<int>& ended, const std::set<int>& present) {
  const size_t voters = static_cast<size_t>(size) - ended.size();
  int lowest = 0;
  while (ended.count(lowest) > 0) ++lowest;
  return 2 * present.size() > voters || (2 * present.size() == voters && present.count(lowest) > 0);
}

ReformAgreement::ReformAgreement(int rank, Table generation)
    : rank_(rank), generation_(std::move(generation)) {}

void ReformAgreement::Start(const ReformOptions& terms, Hello self, std::string name,
                            absl::Duration agreeing, absl::Duration now) {
  terms_ = terms;
  self_ = std::move(self);
  name_ = std::move(name);
  agreeing_ = agreeing;
  gather_until_ = now + terms.member_timeout;
  newcomers_until_ = now + terms.newcomer_timeout;
  proposed_ = false;
  promises_.clear();
  newcomers_.clear();
  accepted_by_.clear();
}

int ReformAgreement::Leader() {
  while (lowest_leader_ < rank_ &&
         (ended_.count(lowest_leader_) > 0 || not_expected_.count(lowest_leader_) > 0)) {
    ++lowest_leader_;
  }
  leader_ = std::min(lowest_leader_, rank_);
  return leader_;
}

Promise ReformAgreement::MakePromise() const {
  return {.group = generation_.group,
          .self = self_,
          .ended = {ended_.begin(), ended_.end()},
          .agreed_at = agreed_at_,
          .agreed = agreed_};
}

void ReformAgreement::Accept(Table proposal) {
  agreed_at_ = leader_;
  agreed_ = std::move(proposal);
}

void ReformAgreement::OnPromise(const Promise& promise) {
  const int rank = promise.self.rank;
  const int size = static_cast<int>(generation_.ranks.size());
  if (promise.group != generation_.group || rank <= rank_ || rank >= size) return;
  for (const int ended : promise.ended) {
    if (ended < size && ended != rank_) ended_.insert(ended);
  }
  promises_[rank] = promise;
}

void ReformAgreement::OnGone(int rank) {
  promises_.erase(rank);
  not_expected_.insert(rank);
}

std::set<int> ReformAgreement::Present() const {
  std::set<int> present = {rank_};
  for (const auto& [rank, promise] : promises_) present.insert(rank);
  return present;
}

std::vector<int> ReformAgreement::Awaited() const {
  std::vector<int> awaited;
  for (int rank = 0; rank < static_cast<int>(generation_.ranks.size()); ++rank) {
    if (rank != rank_ && promises_.count(rank) == 0 && ended_.count(rank) == 0 &&
        not_expected_.count(rank) == 0) {
      awaited.push_back(rank);
    }
  }
  return awaited;
}

ReformAgreement::NextAction ReformAgreement::Next(absl::Duration now) {
  return proposed_ ? Agree(now) : Gather(now);
}

ReformAgreement::NextAction ReformAgreement::Gather(absl::Duration now) {
  const std::set<int> present = Present();
  const bool enough = HasQuorum(static_cast<int>(generation_.ranks.size()), ended_, present);
  if (now < gather_until_ && (!enough || !Awaited().empty())) return Wait{gather_until_};
  if (!enough) return TooFewVotes();
  const size_t size = present.size() + newcomers_.size();
  const bool agreed_before =
      agreed_at_ >= 0 || std::any_of(promises_.begin(), promises_.end(),
                                     [](const auto& one) { return one.second.agreed_at >= 0; });
  if (!agreed_before) {
    if (size < static_cast<size_t>(terms_.max_ranks) && now < newcomers_until_) {
      return Wait{newcomers_until_};
    }
    if (size < static_cast<size_t>(terms_.min_ranks)) return TooFewRanks();
  }
  proposed_ = true;
  agree_until_ = now + agreeing_;
  agreed_ = Compose();
  agreed_at_ = rank_;
  accepted_by_ = {rank_};
  return Proposal{agreed_};
}

// What was accepted at the highest leader, or else all that are here.
Table ReformAgreement::Compose() const {
  const Table* before = agreed_at_ >= 0 ? &agreed_ : nullptr;
  int at = agreed_at_;
  for (const auto& [rank, promise] : promises_) {
    if (promise.agreed_at <= at) continue;
    at = promise.agreed_at;
    before = &promise.agreed;
  }
  if (before != nullptr) return *before;
  Table table{name_, {self_}, generation_.generation + 1};
  for (const auto& [rank, promise] : promises_) table.ranks.push_back(promise.self);
  for (const auto& [joiner, newcomer] : newcomers_) {
    if (table.ranks.size() < static_cast<size_t>(terms_.max_ranks)) table.ranks.push_back(newcomer);
  }
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    table.ranks[rank].rank = static_cast<int>(rank);
    table.ranks[rank].size = static_cast<int>(table.ranks.size());
  }
  return table;
}

ReformAgreement::NextAction ReformAgreement::Agree(absl::Duration now) {
  if (HasQuorum(static_cast<int>(generation_.ranks.size()), ended_, accepted_by_)) {
    return Decision{agreed_};
  }
  if (now < agree_until_) return Wait{agree_until_};
  return TooFewVotes();
}

absl::Status ReformAgreement::TooFewVotes() const {
  std::vector<int> missing;
  for (int rank = 0; rank < static_cast<int>(generation_.ranks.size()); ++rank) {
    const bool here = rank == rank_ || promises_.count(rank) > 0;
    if (!here && ended_.count(rank) == 0) missing.push_back(rank);
  }
  return absl::UnavailableError(absl::StrCat(
      "the group cannot go on: ", missing.size() == 1 ? "rank " : "ranks ",
      absl::StrJoin(missing, ", "), " of ", generation_.ranks.size(), " did not come within ",
      absl::FormatDuration(terms_.member_timeout),
      " and could have gone on elsewhere; start the job again from its last checkpoint"));
}

absl::Status ReformAgreement::TooFewRanks() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the group cannot go on: ", promises_.size() + 1, " of ",
                   generation_.ranks.size(), " ranks are left and ", newcomers_.size(),
                   " came in within ", absl::FormatDuration(terms_.newcomer_timeout),
                   ", but at least ", terms_.min_ranks, " are asked for"));
}

}  // namespace tutti::comm
