#include "runtime/comm/group/join.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/measurement.h"
#include "runtime/comm/collective/node/form.h"
#include "runtime/comm/group/group.h"
#include "runtime/comm/group/group_of_one.h"
#include "runtime/comm/group/reform.h"

namespace tutti::comm {
namespace {

// Ranks that all have a core to themselves look again for some ten microseconds before they sleep;
// where they share cores for certain, looking only takes the core from the one that is waited for.
// Nodes may be of one machine (virtual ones, containers), which is the first word of the host.
int Spins(const Table& table, int rank) {
  const auto machine = [](const Hello& hello) {
    return absl::string_view(hello.host).substr(0, hello.host.find(' '));
  };
  const absl::string_view own = machine(table.ranks[rank]);
  unsigned ranks_here = 0;
  for (const Hello& hello : table.ranks) ranks_here += machine(hello) == own;
  return ranks_here <= std::thread::hardware_concurrency() ? 2000 : 0;
}

std::vector<bool> FirstPeers(int rank, int size) {
  std::vector<bool> peers(size);
  for (int other = 0; other < size; ++other) peers[other] = NeedsLink(rank, other, size);
  return peers;
}

struct Connected {
  Links links;
  std::unique_ptr<NodeTeam> team;
};

absl::StatusOr<Connected> ConnectAll(const GroupOptions& options, RendezvousResult rendezvous,
                                     Listeners listeners) {
  const int spins = Spins(rendezvous.table, options.rank);
  const std::vector<bool> within_host = WithinHost(rendezvous.table, options.rank);
  // Before anybody can leave, so that all find the fault themselves, if the ranks differ.
  TUTTI_ASSIGN_OR_RETURN(auto connector, Connector::Make(std::move(rendezvous.table), options.rank,
                                                         options.token, std::move(listeners)));
  auto membership = std::make_unique<Membership>(
      options.rank, options.size, std::move(rendezvous.controls), options.peer_timeout);
  const auto fail = [&](Membership& membership, absl::Status status) {
    // It will vote on what follows.
    if (options.elastic) TUTTI_RETURN_IF_ERROR(membership.LeaveToReform(within_host));
    // A rank that died is the cause of a connection that failed; it is heard of soon.
    TUTTI_RETURN_IF_ERROR(membership.CheckWithin(options.peer_timeout / 8));
    return status;
  };
  // Connecting counts as the first collective: who fails in it ends it for all.
  const absl::Status begun = membership->Begin("connecting");
  if (!begun.ok()) return fail(*membership, begun);
  const base::Deadline deadline = base::Deadline::After(options.connect_timeout);
  auto channels = connector->ConnectAll(FirstPeers(options.rank, options.size),
                                        {deadline, membership->ended_fd()});
  if (!channels.ok()) return fail(*membership, channels.status());
  Links links(options.rank, *std::move(channels), std::move(connector), std::move(membership),
              spins);
  auto team = FormNodeTeam(links, spins, deadline);
  if (!team.ok()) return fail(links.membership(), team.status());
  const bool one_node = *team != nullptr && (*team)->size() == options.size;
  if (!options.deterministic && !one_node) {
    const auto cost = MeasureLinks(links, deadline);
    if (!cost.ok()) return fail(links.membership(), cost.status());
    links.set_cost(*cost);
  }
  links.membership().End();
  return Connected{std::move(links), *std::move(team)};
}

}  // namespace

absl::Status Validate(const GroupOptions& options) {
  if (options.size < 1 || options.size > kMostRanks || options.rank < 0 ||
      options.rank >= options.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " in a group of ", options.size));
  }
  if (options.node < 0 || options.node >= kMostRanks) {
    return absl::InvalidArgumentError(absl::StrCat("node ", options.node));
  }
  if (options.size > 1 && (options.master_port < 1 || options.master_port > 65535)) {
    return absl::InvalidArgumentError(absl::StrCat("master port ", options.master_port));
  }
  return absl::OkStatus();
}

absl::StatusOr<Formed> Form(const GroupOptions& options, RendezvousResult rendezvous,
                            Listeners listeners, std::vector<int> whole) {
  if (options.size == 1) return Formed{MakeGroupOfOne()};
  TUTTI_ASSIGN_OR_RETURN(Connected connected,
                         ConnectAll(options, std::move(rendezvous), std::move(listeners)));
  Membership* const membership = &connected.links.membership();
  return Formed{std::make_unique<Group>(std::move(connected.links), std::move(connected.team),
                                        options, std::move(whole)),
                membership};
}

absl::StatusOr<std::unique_ptr<Communicator>> Join(const GroupOptions& given,
                                                   base::UniqueFd listener, std::vector<int> whole,
                                                   int interrupt) {
  TUTTI_RETURN_IF_ERROR(Validate(given));
  GroupOptions options = given;
  options.elastic = given.elastic && whole.empty();  // a part of a group goes with the whole
  if (options.elastic) return JoinElastic(std::move(options));
  if (options.size == 1) return MakeGroupOfOne();
  if (options.address.empty()) {
    TUTTI_ASSIGN_OR_RETURN(options.address,
                           AddressToward({options.master_address, options.master_port}));
  }
  Hello self{options.rank, options.size, options.node, options.transport, "", "", 0, ""};
  TUTTI_ASSIGN_OR_RETURN(Listeners listeners, OpenListeners(options, self));
  TUTTI_ASSIGN_OR_RETURN(RendezvousResult rendezvous,
                         Rendezvous(options, self, std::move(listener), interrupt));
  TUTTI_ASSIGN_OR_RETURN(
      Formed formed, Form(options, std::move(rendezvous), std::move(listeners), std::move(whole)));
  return std::move(formed.group);
}

absl::StatusOr<std::unique_ptr<Communicator>> JoinGroup(const GroupOptions& options) {
  return Join(options, base::UniqueFd(), {});
}

}  // namespace tutti::comm
