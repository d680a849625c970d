#include "runtime/comm/communicator.h"

#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/collective/chain.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduce.h"
#include "runtime/comm/collective/ring.h"
#include "runtime/comm/collective/small.h"
#include "runtime/comm/rendezvous/rendezvous.h"
#include "runtime/comm/transport/connect.h"

namespace tutti::comm {
namespace {

// Up to here the number of hops decides, beyond it the number of bytes (measured with
// benchmarks/collectives).
constexpr size_t kSmall = 16 << 10;

class GroupOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status AllReduce(void*, size_t, DataType, ReduceOp, base::Deadline) override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(void*, size_t, int root, base::Deadline) override {
    if (root != 0)
      return absl::InvalidArgumentError(absl::StrCat("root ", root, " in a group of 1"));
    return absl::OkStatus();
  }
  absl::Status AllGather(const void* input, size_t bytes, void* output, base::Deadline) override {
    if (bytes > 0 && input != output) std::memcpy(output, input, bytes);
    return absl::OkStatus();
  }
  absl::Status Barrier(base::Deadline) override { return absl::OkStatus(); }
};

class Group final : public Communicator {
 public:
  explicit Group(Links links) : links_(std::move(links)) {}

  int rank() const override { return links_.rank(); }
  int size() const override { return links_.size(); }

  absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                         base::Deadline deadline) override {
    const Reduction reduction{type, op, size()};
    std::byte* const bytes = static_cast<std::byte*>(data);
    return Run("all-reduce", [&] {
      const size_t length = count * SizeOf(type);
      if (length == 0) return absl::OkStatus();
      if (length <= kSmall) {
        return DoublingAllReduce(links_, {bytes, length}, reduction, deadline);
      }
      return RingAllReduce(links_, bytes, count, reduction, deadline);
    });
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) override {
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(absl::StrCat("root ", root, " in a group of ", size()));
    }
    const std::span<std::byte> span(static_cast<std::byte*>(data), bytes);
    return Run("broadcast", [&] {
      return bytes <= kSmall ? TreeBroadcast(links_, span, root, deadline)
                             : ChainBroadcast(links_, span, root, deadline);
    });
  }

  absl::Status AllGather(const void* input, size_t bytes, void* output,
                         base::Deadline deadline) override {
    std::byte* const chunks = static_cast<std::byte*>(output);
    return Run("all-gather", [&] {
      // In place when the caller has put its part there already.
      if (bytes > 0) std::memmove(chunks + rank() * bytes, input, bytes);
      return RingAllGather(links_, chunks, bytes, deadline);
    });
  }

  absl::Status Barrier(base::Deadline deadline) override {
    return Run("barrier", [&] { return DisseminationBarrier(links_, deadline); });
  }

 private:
  template <typename Collective>
  absl::Status Run(const char* what, const Collective& collective) {
    TUTTI_RETURN_IF_ERROR(links_.membership().Begin(what));
    TUTTI_RETURN_IF_ERROR(collective());
    links_.membership().End();
    return absl::OkStatus();
  }

  Links links_;
};

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

// Ranks that all have a core to themselves look again for some ten microseconds before they sleep;
// where they share cores for certain, looking only takes the core from the one that is waited for.
int Spins(const Table& table, int rank) {
  unsigned ranks_here = 0;
  for (const Hello& hello : table.ranks) ranks_here += hello.host == table.ranks[rank].host;
  return ranks_here <= std::thread::hardware_concurrency() ? 2000 : 0;
}

std::vector<bool> Peers(int rank, int size) {
  std::vector<bool> peers(size);
  for (int other = 0; other < size; ++other) peers[other] = NeedsLink(rank, other, size);
  return peers;
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectAll(const GroupOptions& options,
                                                         Meeting meeting,
                                                         const Listeners& listeners) {
  auto membership = std::make_unique<Membership>(options.rank, options.size,
                                                 std::move(meeting.controls), options.peer_timeout);
  // Connecting counts as the first collective: who fails in it ends it for all.
  TUTTI_RETURN_IF_ERROR(membership->Begin("connecting"));
  auto channels = ConnectChannels(
      meeting.table, options.rank, Peers(options.rank, options.size), options.token, listeners,
      {base::Deadline::After(options.connect_timeout), membership->ended_fd()});
  if (!channels.ok()) {
    // A rank that died is the cause of a connection that failed; it is heard of soon.
    if (!absl::IsInvalidArgument(channels.status())) {
      TUTTI_RETURN_IF_ERROR(membership->CheckWithin(options.peer_timeout / 8));
    }
    return channels.status();
  }
  membership->End();
  return std::make_unique<Group>(Links(options.rank, options.size, *std::move(channels),
                                       std::move(membership), Spins(meeting.table, options.rank)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> JoinGroup(const GroupOptions& given) {
  TUTTI_RETURN_IF_ERROR(Validate(given));
  if (given.size == 1) return std::make_unique<GroupOfOne>();
  GroupOptions options = given;
  if (options.address.empty()) {
    TUTTI_ASSIGN_OR_RETURN(options.address,
                           AddressToward({options.master_address, options.master_port}));
  }
  Hello self{options.rank, options.size, options.node, options.transport, "", "", 0, ""};
  TUTTI_ASSIGN_OR_RETURN(const Listeners listeners, OpenListeners(options, self));
  TUTTI_ASSIGN_OR_RETURN(Meeting meeting, Meet(options, self));
  return ConnectAll(options, std::move(meeting), listeners);
}

}  // namespace tutti::comm
