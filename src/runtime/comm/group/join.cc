#include "runtime/comm/group/join.h"

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/collective/call.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/measurement.h"
#include "runtime/comm/collective/node/form.h"
#include "runtime/comm/collective/node/plain_buffer.h"
#include "runtime/comm/group/group.h"
#include "runtime/comm/group/new_group.h"
#include "runtime/comm/group/reform.h"

namespace tutti::comm {
namespace {

absl::Status Copy(const void* input, size_t bytes, void* output) {
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, bytes));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output, bytes));
  if (bytes > 0 && input != output) std::memcpy(output, input, bytes);
  return absl::OkStatus();
}

// A group of one rank, which has no network and no thread. Collectives check their arguments as in
// any group and copy what has to be copied.
class GroupOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Placement placement() const override { return {}; }

  absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                         base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(CheckParts("elements", {&count, 1}, 1));
    TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
    return CheckBuffer("an all-reduce", data, count * SizeOf(type));
  }

  absl::Status ReduceScatter(const void* input, std::span<const size_t> counts, void* output,
                             DataType type, ReduceOp op, base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(CheckParts("counts", counts, 1));
    TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
    return Copy(input, counts[0] * SizeOf(type), output);
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(CheckRank("root", root, 1));
    return CheckBuffer("a broadcast", data, bytes);
  }

  absl::Status AllGather(const void* input, size_t bytes, void* output, base::Deadline) override {
    return Copy(input, bytes, output);
  }

  absl::Status AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                          base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(CheckParts("sizes", bytes, 1));
    return Copy(input, bytes[0], output);
  }

  absl::Status AllToAllV(const void* input, std::span<const size_t> send_bytes, void* output,
                         std::span<const size_t> receive_bytes, base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(CheckAllToAll(send_bytes, receive_bytes, 0, 1));
    return Copy(input, send_bytes[0], output);
  }

  absl::Status Barrier(base::Deadline) override { return absl::OkStatus(); }

  absl::Status Send(const void*, size_t, int to, base::Deadline) override {
    return CheckOther("send to rank", to, 0, 1);
  }

  absl::Status Receive(void*, size_t, int from, base::Deadline) override {
    return CheckOther("receive from rank", from, 0, 1);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> NewGroup(std::span<const int> ranks,
                                                         base::Deadline) override {
    TUTTI_RETURN_IF_ERROR(MembersOf(ranks, 0, 1).status());
    return std::make_unique<GroupOfOne>();
  }

  absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t bytes) override {
    return AllocatePlain(bytes);
  }
};

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
  if (options.size == 1) return Formed{std::make_unique<GroupOfOne>()};
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
  if (options.size == 1) return std::make_unique<GroupOfOne>();
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
