#include "runtime/comm/rendezvous/lineage.h"

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
#include "runtime/comm/rendezvous/reception.h"
#include "runtime/comm/rendezvous/socket.h"

namespace tutti::comm {
namespace {

constexpr absl::Duration kProbe = absl::Milliseconds(300);

class Agreement {
 public:
  Agreement(Lineage& line, const ReformOptions& terms, const Hello& self)
      : line_(line),
        silence_(LongestSilence(line.options)),
        // A leader may begin as late as it is waited for, and wait as long again.
        deadline_(base::Deadline::After(terms.gather * 2 + terms.patience + silence_ * 3)) {
    if (!line.succession.has_value()) line.succession.emplace(line.options.rank, line.table);
    succession().Start(terms, self, base::RandomHex(16), silence_ * 2, base::SteadyNow());
  }

  absl::StatusOr<Outcome> Reach() {
    while (true) {
      LookAround();
      const int leader = succession().Leader();
      if (leader == line_.options.rank) return Lead();
      TUTTI_ASSIGN_OR_RETURN(std::optional<Outcome> outcome, Follow(leader));
      if (outcome.has_value()) return *std::move(outcome);
      succession().GiveUp();
    }
  }

 private:
  Succession& succession() { return *line_.succession; }
  Door& door() { return *line_.door; }

  void LookAround() {
    if (line_.membership == nullptr) return;
    for (const int rank : line_.membership->Lost()) succession().NotExpected(rank);
    const std::vector<Line::End> ends = line_.membership->SeenToEnd();
    const std::vector<bool> within_host = WithinHost(line_.table, line_.options.rank);
    for (size_t rank = 0; rank < ends.size(); ++rank) {
      const bool whole = ends[rank] == Line::End::kInOrder || within_host[rank];
      if (ends[rank] != Line::End::kOpen && whole) succession().SawEnd(static_cast<int>(rank));
    }
  }

  absl::StatusOr<base::UniqueFd> GoTo(int rank, absl::Duration patience) {
    const Hello& place = line_.table.ranks[rank];
    const Patience wait{base::Deadline::Sooner(deadline_, base::Deadline::After(patience))};
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                           Connect({place.address, place.door}, line_.options.address, wait));
    TUTTI_RETURN_IF_ERROR(
        Authenticate(fd.get(), Side::kOpener, line_.options.token, kRendezvousPurpose, wait));
    return fd;
  }

  // None when the leader is lost.
  absl::StatusOr<std::optional<Outcome>> Follow(int leader) {
    door().Follow(line_.table.ranks[leader]);
    absl::StatusOr<base::UniqueFd> fd = GoTo(leader, silence_);
    const Patience wait{base::Deadline::After(silence_)};
    if (!fd.ok() || !SendMessage(fd->get(), succession().Vote(), wait).ok()) return std::nullopt;
    while (!deadline_.Expired()) {
      absl::StatusOr<Message> message =
          ReceiveMessage(fd->get(), kLongestMessage, {base::Deadline::After(silence_)});
      if (!message.ok()) return std::nullopt;
      if (Propose* const propose = std::get_if<Propose>(&*message)) {
        if (!CheckTable(propose->table).ok()) return std::nullopt;
        succession().Accept(std::move(propose->table));
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

  static Outcome Heard(Decided decided, base::UniqueFd fd) {
    Outcome outcome{std::move(decided.table), {}};
    if (decided.from_rank_zero) outcome.controls.push_back(std::move(fd));
    return outcome;
  }

  absl::StatusOr<Outcome> Lead() {
    door().Lead();
    auto next_probe = base::Deadline::After(kProbe);
    while (true) {
      LookAround();
      Receive();
      Succession::Verdict verdict = succession().Next(base::SteadyNow());
      if (auto* const proposal = std::get_if<Succession::Proposal>(&verdict)) {
        for (const auto& [number, rank] : members_) door().Say(number, Propose{proposal->table});
        continue;  // alone it has enough already
      } else if (auto* const decision = std::get_if<Succession::Decision>(&verdict)) {
        return Conclude(std::move(decision->table));
      } else if (auto* const failure = std::get_if<absl::Status>(&verdict)) {
        door().Dismiss(*failure);
        return *failure;
      }
      if (next_probe.Expired()) {
        next_probe = base::Deadline::After(kProbe);
        if (std::optional<Table> next = Probe()) return Outcome{*std::move(next), {}};
      }
      door().AwaitChange(base::Deadline::After(kProbe / 3));
    }
  }

  // Who stands at the door now.
  void Receive() {
    std::map<int, int> members;
    std::map<int, Hello> newcomers;
    for (const Door::Guest& guest : door().Guests()) {
      if (const Knock* const knock = std::get_if<Knock>(&guest.word)) {
        newcomers[guest.number] = knock->self;
        continue;
      }
      const Come& come = std::get<Come>(guest.word);
      if (come.group != line_.table.group || !CheckVote(come, line_.table).ok()) continue;
      members[guest.number] = come.self.rank;
      succession().OnCome(come);
      if (guest.accepted) succession().OnAccepted(come.self.rank);
    }
    for (const auto& [number, rank] : members_) {
      if (members.count(number) == 0) succession().OnGone(rank);
    }
    for (const auto& [number, hello] : newcomers_) succession().OnKnockGone(number);
    for (const auto& [number, hello] : newcomers) succession().OnKnock(number, hello);
    members_ = std::move(members);
    newcomers_ = std::move(newcomers);
  }

  // One of those that have not come: where nobody listens any longer nobody needs to be waited for,
  // and one that has gone on already knows what was decided.
  std::optional<Table> Probe() {
    const std::vector<int> awaited = succession().Awaited();
    if (awaited.empty()) return std::nullopt;
    const int rank = awaited[probes_++ % awaited.size()];
    absl::StatusOr<base::UniqueFd> fd = GoTo(rank, kProbe);
    if (fd.status().message() == absl::string_view(std::strerror(ECONNREFUSED))) {
      succession().NotExpected(rank);
    }
    const Patience wait{base::Deadline::After(kProbe)};
    if (!fd.ok() || !SendMessage(fd->get(), Ask{line_.table.group}, wait).ok()) {
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
    for (const Door::Guest& guest : door().Guests()) {
      const Come* const come = std::get_if<Come>(&guest.word);
      const std::optional<int> place =
          PlaceIn(table, come != nullptr ? come->self : std::get<Knock>(guest.word).self);
      if (place.has_value()) numbers[*place] = guest.number;
    }
    if (PlaceIn(table, succession().Vote().self) != 0) return {};
    if (std::count(numbers.begin() + 1, numbers.end(), -1) > 0) return {};
    for (size_t rank = 1; rank < numbers.size(); ++rank) {
      controls[rank] = door().Take(numbers[rank], {base::Deadline::After(silence_)});
      if (!controls[rank].valid()) return {};
    }
    return controls;
  }

  Outcome Conclude(Table table) {
    Outcome outcome{table, Controls(table)};
    for (const base::UniqueFd& fd : outcome.controls) {
      if (!fd.valid()) continue;  // its own
      // Who does not hear it is missed when the group connects.
      SendMessage(fd.get(), Decided{table, true}, {base::Deadline::After(silence_)}).IgnoreError();
    }
    door().Decide(line_.table.group, table);
    return outcome;
  }

  Lineage& line_;
  const absl::Duration silence_;
  const base::Deadline deadline_;
  std::map<int, int> members_;  // by their guest's number
  std::map<int, Hello> newcomers_;
  size_t probes_ = 0;
};

}  // namespace

absl::StatusOr<Outcome> AgreeOnSuccessor(Lineage& line, const ReformOptions& terms,
                                         const Hello& self) {
  return Agreement(line, terms, self).Reach();
}

std::optional<int> PlaceIn(const Table& table, const Hello& self) {
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
