#include "runtime/comm/rendezvous/membership/generation.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/check_table.h"
#include "runtime/comm/rendezvous/rendezvous_server.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {
namespace {

constexpr absl::Duration kProbe = absl::Milliseconds(300);

class Agreement {
 public:
  Agreement(Generation& line, const ReformOptions& terms, const Hello& self)
      : line_(line),
        silence_(LongestSilence(line.options)),
        // A leader may begin as late as it is waited for, and wait as long again.
        deadline_(base::Deadline::After(terms.member_timeout * 2 + terms.newcomer_timeout +
                                        silence_ * 3)) {
    if (!line.agreement.has_value()) line.agreement.emplace(line.options.rank, line.table);
    agreement().Start(terms, self, base::RandomHex(16), silence_ * 2, base::SteadyNow());
  }

  absl::StatusOr<ReformOutcome> Reach() {
    while (true) {
      LookAround();
      const int leader = agreement().Leader();
      if (leader == line_.options.rank) return Lead();
      TUTTI_ASSIGN_OR_RETURN(std::optional<ReformOutcome> outcome, Follow(leader));
      if (outcome.has_value()) return *std::move(outcome);
      agreement().GiveUp();
    }
  }

 private:
  ReformAgreement& agreement() { return *line_.agreement; }
  RejoinListener& listener() { return *line_.listener; }

  void LookAround() {
    if (line_.membership == nullptr) return;
    for (const int rank : line_.membership->Lost()) agreement().NotExpected(rank);
    const std::vector<BufferedConnection::End> ends = line_.membership->SeenToEnd();
    const std::vector<bool> within_host = WithinHost(line_.table, line_.options.rank);
    for (size_t rank = 0; rank < ends.size(); ++rank) {
      const bool whole = ends[rank] == BufferedConnection::End::kInOrder || within_host[rank];
      if (ends[rank] != BufferedConnection::End::kOpen && whole)
        agreement().SawEnd(static_cast<int>(rank));
    }
  }

  absl::StatusOr<base::UniqueFd> GoTo(int rank, absl::Duration patience) {
    const Hello& place = line_.table.ranks[rank];
    const Patience wait{base::Deadline::Sooner(deadline_, base::Deadline::After(patience))};
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, Connect({place.address, place.rejoin_port},
                                                      line_.options.address, wait));
    TUTTI_RETURN_IF_ERROR(
        Authenticate(fd.get(), Side::kOpener, line_.options.token, kRendezvousPurpose, wait));
    return fd;
  }

  // None when the leader is lost.
  absl::StatusOr<std::optional<ReformOutcome>> Follow(int leader) {
    listener().Follow(line_.table.ranks[leader]);
    absl::StatusOr<base::UniqueFd> fd = GoTo(leader, silence_);
    const Patience wait{base::Deadline::After(silence_)};
    if (!fd.ok() || !SendMessage(fd->get(), agreement().MakePromise(), wait).ok())
      return std::nullopt;
    while (!deadline_.Expired()) {
      absl::StatusOr<Message> message =
          ReceiveMessage(fd->get(), kLongestMessage, {base::Deadline::After(silence_)});
      if (!message.ok()) return std::nullopt;
      if (Propose* const propose = std::get_if<Propose>(&*message)) {
        if (!CheckTable(propose->table).ok()) return std::nullopt;
        agreement().Accept(std::move(propose->table));
        if (!SendMessage(fd->get(), Accepted{}, wait).ok()) return std::nullopt;
      } else if (const Refusal* const refusal = std::get_if<Refusal>(&*message)) {
        return absl::Status(refusal->code, refusal->text);
      } else if (Decided* const decided = std::get_if<Decided>(&*message)) {
        if (!CheckTable(decided->table).ok()) return std::nullopt;
        return Heard(std::move(*decided), *std::move(fd));
      }
    }
    return absl::DeadlineExceededError(
        absl::StrCat("rank ", leader, " lives and did not begin to re-form the group"));
  }

  static ReformOutcome Heard(Decided decided, base::UniqueFd fd) {
    ReformOutcome outcome{std::move(decided.table), {}};
    if (decided.from_rank_zero) outcome.controls.push_back(std::move(fd));
    return outcome;
  }

  absl::StatusOr<ReformOutcome> Lead() {
    listener().Lead();
    auto next_probe = base::Deadline::After(kProbe);
    while (true) {
      LookAround();
      Receive();
      ReformAgreement::NextAction action = agreement().Next(base::SteadyNow());
      if (auto* const proposal = std::get_if<ReformAgreement::Proposal>(&action)) {
        for (const auto& [number, rank] : members_)
          listener().Say(number, Propose{proposal->table});
        continue;  // alone it has enough already
      } else if (auto* const decision = std::get_if<ReformAgreement::Decision>(&action)) {
        return Conclude(std::move(decision->table));
      } else if (auto* const failure = std::get_if<absl::Status>(&action)) {
        listener().Dismiss(*failure);
        return *failure;
      }
      if (next_probe.Expired()) {
        next_probe = base::Deadline::After(kProbe);
        if (std::optional<Table> next = Probe()) return ReformOutcome{*std::move(next), {}};
      }
      listener().AwaitChange(base::Deadline::After(kProbe / 3));
    }
  }

  // Who is connected to the listener now.
  void Receive() {
    std::map<int, int> members;
    std::map<int, Hello> newcomers;
    for (const RejoinListener::Joiner& joiner : listener().Joiners()) {
      if (const JoinRequest* const request = std::get_if<JoinRequest>(&joiner.word)) {
        newcomers[joiner.number] = request->self;
        continue;
      }
      const Promise& promise = std::get<Promise>(joiner.word);
      if (promise.group != line_.table.group || !CheckPromise(promise, line_.table).ok()) continue;
      members[joiner.number] = promise.self.rank;
      agreement().OnPromise(promise);
      if (joiner.accepted) agreement().OnAccepted(promise.self.rank);
    }
    for (const auto& [number, rank] : members_) {
      if (members.count(number) == 0) agreement().OnGone(rank);
    }
    for (const auto& [number, hello] : newcomers_) agreement().OnNewcomerGone(number);
    for (const auto& [number, hello] : newcomers) agreement().OnJoinRequest(number, hello);
    members_ = std::move(members);
    newcomers_ = std::move(newcomers);
  }

  // One of those that have not come: where nobody listens any longer nobody needs to be waited for,
  // and one that has gone on already knows what was decided.
  std::optional<Table> Probe() {
    const std::vector<int> awaited = agreement().Awaited();
    if (awaited.empty()) return std::nullopt;
    const int rank = awaited[probes_++ % awaited.size()];
    absl::StatusOr<base::UniqueFd> fd = GoTo(rank, kProbe);
    if (fd.status().message() == absl::string_view(std::strerror(ECONNREFUSED))) {
      agreement().NotExpected(rank);
    }
    const Patience wait{base::Deadline::After(kProbe)};
    if (!fd.ok() || !SendMessage(fd->get(), SuccessorQuery{line_.table.group}, wait).ok()) {
      return std::nullopt;
    }
    absl::StatusOr<Message> answer = ReceiveMessage(fd->get(), kLongestMessage, wait);
    Decided* const decided = answer.ok() ? std::get_if<Decided>(&*answer) : nullptr;
    if (decided == nullptr || !CheckTable(decided->table).ok()) return std::nullopt;
    return std::move(decided->table);
  }

  // The connections of all members of the table, if they are all here and this rank is its first.
  std::vector<base::UniqueFd> Controls(const Table& table) {
    std::vector<base::UniqueFd> controls(table.ranks.size());
    std::vector<int> numbers(table.ranks.size(), -1);
    for (const RejoinListener::Joiner& joiner : listener().Joiners()) {
      const Promise* const promise = std::get_if<Promise>(&joiner.word);
      const std::optional<int> place = RankIn(
          table, promise != nullptr ? promise->self : std::get<JoinRequest>(joiner.word).self);
      if (place.has_value()) numbers[*place] = joiner.number;
    }
    if (RankIn(table, agreement().MakePromise().self) != 0) return {};
    if (std::count(numbers.begin() + 1, numbers.end(), -1) > 0) return {};
    for (size_t rank = 1; rank < numbers.size(); ++rank) {
      controls[rank] = listener().Take(numbers[rank], {base::Deadline::After(silence_)});
      if (!controls[rank].valid()) return {};
    }
    return controls;
  }

  ReformOutcome Conclude(Table table) {
    ReformOutcome outcome{table, Controls(table)};
    for (const base::UniqueFd& fd : outcome.controls) {
      if (!fd.valid()) continue;  // its own
      // Who does not hear it is missed when the group connects.
      SendMessage(fd.get(), Decided{table, true}, {base::Deadline::After(silence_)}).IgnoreError();
    }
    listener().Decide(line_.table.group, table);
    return outcome;
  }

  Generation& line_;
  const absl::Duration silence_;
  const base::Deadline deadline_;
  std::map<int, int> members_;  // by their joiner's number
  std::map<int, Hello> newcomers_;
  size_t probes_ = 0;
};

}  // namespace

absl::StatusOr<ReformOutcome> AgreeOnSuccessor(Generation& line, const ReformOptions& terms,
                                               const Hello& self) {
  return Agreement(line, terms, self).Reach();
}

std::optional<int> RankIn(const Table& table, const Hello& self) {
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    if (IsSameProcess(table.ranks[rank], self)) return static_cast<int>(rank);
  }
  return std::nullopt;
}

std::vector<bool> WithinHost(const Table& table, int rank) {
  std::vector<bool> within(table.ranks.size());
  for (size_t other = 0; other < within.size(); ++other) {
    within[other] = table.ranks[other].host == table.ranks[rank].host;
  }
  return within;
}

absl::Duration LongestSilence(const GroupOptions& options) {
  return std::max(options.peer_timeout, absl::Seconds(2));
}

}  // namespace tutti::comm
