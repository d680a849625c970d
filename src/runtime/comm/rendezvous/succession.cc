#include "runtime/comm/rendezvous/succession.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::comm {

bool Enough(int size, const std::set<int>& ended, const std::set<int>& present) {
  const size_t voters = static_cast<size_t>(size) - ended.size();
  int lowest = 0;
  while (ended.count(lowest) > 0) ++lowest;
  return 2 * present.size() > voters || (2 * present.size() == voters && present.count(lowest) > 0);
}

Succession::Succession(int rank, Table generation)
    : rank_(rank), generation_(std::move(generation)) {}

void Succession::Start(const ReformOptions& terms, Hello self, std::string name,
                       absl::Duration agreeing, absl::Duration now) {
  terms_ = terms;
  self_ = std::move(self);
  name_ = std::move(name);
  agreeing_ = agreeing;
  gather_until_ = now + terms.gather;
  newcomers_until_ = now + terms.patience;
  proposed_ = false;
  came_.clear();
  newcomers_.clear();
  accepted_by_.clear();
}

int Succession::Leader() {
  while (lowest_leader_ < rank_ &&
         (ended_.count(lowest_leader_) > 0 || not_expected_.count(lowest_leader_) > 0)) {
    ++lowest_leader_;
  }
  leader_ = std::min(lowest_leader_, rank_);
  return leader_;
}

Come Succession::Vote() const {
  return {.group = generation_.group,
          .self = self_,
          .ended = {ended_.begin(), ended_.end()},
          .agreed_at = agreed_at_,
          .agreed = agreed_};
}

void Succession::Accept(Table proposal) {
  agreed_at_ = leader_;
  agreed_ = std::move(proposal);
}

void Succession::OnCome(const Come& come) {
  const int rank = come.self.rank;
  const int size = static_cast<int>(generation_.ranks.size());
  if (come.group != generation_.group || rank <= rank_ || rank >= size) return;
  for (const int ended : come.ended) {
    if (ended < size && ended != rank_) ended_.insert(ended);
  }
  came_[rank] = come;
}

void Succession::OnGone(int rank) {
  came_.erase(rank);
  not_expected_.insert(rank);
}

std::set<int> Succession::Present() const {
  std::set<int> present = {rank_};
  for (const auto& [rank, come] : came_) present.insert(rank);
  return present;
}

std::vector<int> Succession::Awaited() const {
  std::vector<int> awaited;
  for (int rank = 0; rank < static_cast<int>(generation_.ranks.size()); ++rank) {
    if (rank != rank_ && came_.count(rank) == 0 && ended_.count(rank) == 0 &&
        not_expected_.count(rank) == 0) {
      awaited.push_back(rank);
    }
  }
  return awaited;
}

Succession::Verdict Succession::Next(absl::Duration now) {
  return proposed_ ? Agree(now) : Gather(now);
}

Succession::Verdict Succession::Gather(absl::Duration now) {
  const std::set<int> present = Present();
  const bool enough = Enough(static_cast<int>(generation_.ranks.size()), ended_, present);
  if (now < gather_until_ && (!enough || !Awaited().empty())) return Wait{gather_until_};
  if (!enough) return TooFewVotes();
  const size_t size = present.size() + newcomers_.size();
  const bool agreed_before =
      agreed_at_ >= 0 || std::any_of(came_.begin(), came_.end(),
                                     [](const auto& one) { return one.second.agreed_at >= 0; });
  if (!agreed_before) {
    if (size < static_cast<size_t>(terms_.most) && now < newcomers_until_) {
      return Wait{newcomers_until_};
    }
    if (size < static_cast<size_t>(terms_.least)) return TooFewRanks();
  }
  proposed_ = true;
  agree_until_ = now + agreeing_;
  agreed_ = Compose();
  agreed_at_ = rank_;
  accepted_by_ = {rank_};
  return Proposal{agreed_};
}

// What was accepted at the highest leader, or else all that are here.
Table Succession::Compose() const {
  const Table* before = agreed_at_ >= 0 ? &agreed_ : nullptr;
  int at = agreed_at_;
  for (const auto& [rank, come] : came_) {
    if (come.agreed_at <= at) continue;
    at = come.agreed_at;
    before = &come.agreed;
  }
  if (before != nullptr) return *before;
  Table table{name_, {self_}, generation_.generation + 1};
  for (const auto& [rank, come] : came_) table.ranks.push_back(come.self);
  for (const auto& [guest, newcomer] : newcomers_) {
    if (table.ranks.size() < static_cast<size_t>(terms_.most)) table.ranks.push_back(newcomer);
  }
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    table.ranks[rank].rank = static_cast<int>(rank);
    table.ranks[rank].size = static_cast<int>(table.ranks.size());
  }
  return table;
}

Succession::Verdict Succession::Agree(absl::Duration now) {
  if (Enough(static_cast<int>(generation_.ranks.size()), ended_, accepted_by_)) {
    return Decision{agreed_};
  }
  if (now < agree_until_) return Wait{agree_until_};
  return TooFewVotes();
}

absl::Status Succession::TooFewVotes() const {
  std::vector<int> missing;
  for (int rank = 0; rank < static_cast<int>(generation_.ranks.size()); ++rank) {
    const bool here = rank == rank_ || came_.count(rank) > 0;
    if (!here && ended_.count(rank) == 0) missing.push_back(rank);
  }
  return absl::UnavailableError(absl::StrCat(
      "the group cannot go on: ", missing.size() == 1 ? "rank " : "ranks ",
      absl::StrJoin(missing, ", "), " of ", generation_.ranks.size(), " did not come within ",
      absl::FormatDuration(terms_.gather),
      " and could have gone on elsewhere; start the job again from its last checkpoint"));
}

absl::Status Succession::TooFewRanks() const {
  return absl::FailedPreconditionError(absl::StrCat(
      "the group cannot go on: ", came_.size() + 1, " of ", generation_.ranks.size(),
      " ranks are left and ", newcomers_.size(), " came in within ",
      absl::FormatDuration(terms_.patience), ", but at least ", terms_.least, " are asked for"));
}

}  // namespace tutti::comm
