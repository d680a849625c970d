#include "runtime/comm/group/group.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/collective/adasum.h"
#include "runtime/comm/collective/all_gather.h"
#include "runtime/comm/collective/all_reduce.h"
#include "runtime/comm/collective/all_to_all.h"
#include "runtime/comm/collective/latency_optimal.h"
#include "runtime/comm/collective/node/node_collectives.h"
#include "runtime/comm/collective/node/plain_buffer.h"
#include "runtime/comm/collective/reduce_scatter.h"
#include "runtime/comm/collective/ring.h"
#include "runtime/comm/group/new_group.h"
#include "runtime/comm/group/rank_placement.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::comm {
namespace {

// Up to here the number of hops decides, beyond it the number of bytes (measured with
// benchmarks/collectives).
constexpr size_t kSmall = 16 << 10;

std::byte* Bytes(void* data) { return static_cast<std::byte*>(data); }
const std::byte* Bytes(const void* data) { return static_cast<const std::byte*>(data); }

}  // namespace

Group::Group(Links links, std::unique_ptr<NodeTeam> team, GroupOptions options,
             std::vector<int> whole)
    : links_(std::move(links)),
      team_(std::move(team)),
      two_level_(TwoLevel::Make(links_, team_.get())),
      options_(std::move(options)),
      whole_(std::move(whole)),
      placement_(PlacementOf(links_.connector().table(), links_.rank())) {}

// ---- The choice of the algorithm ----

absl::Status Group::MoveAllReduce(std::byte* data, size_t count, const Reduction& reduction,
                                  base::Deadline deadline) {
  if (reduction.op == ReduceOp::kAdasum) {
    return AdasumAllReduce(links_, data, count, reduction.type, deadline);
  }
  if (IsOneNode()) return NodeAllReduce(*team_, data, count, reduction, true, deadline);
  TUTTI_RETURN_IF_ERROR(two_level_.status());
  if (*two_level_ != nullptr) return (*two_level_)->AllReduce(data, count, reduction, deadline);
  return comm::AllReduce(links_, data, count, reduction, deadline);
}

absl::Status Group::MoveReduceScatter(const std::byte* input, std::span<const size_t> counts,
                                      std::byte* output, const Reduction& reduction,
                                      base::Deadline deadline) {
  const Chunks given(const_cast<std::byte*>(input), counts, SizeOf(reduction.type));
  const std::span<const std::byte> all = given.All();
  if (reduction.op == ReduceOp::kAdasum) {
    std::vector<std::byte> copy(all.begin(), all.end());
    const size_t count = all.size() / SizeOf(reduction.type);
    TUTTI_RETURN_IF_ERROR(AdasumAllReduce(links_, copy.data(), count, reduction.type, deadline));
    const auto own = Chunks(copy.data(), counts, SizeOf(reduction.type))[rank()];
    if (!own.empty()) std::memcpy(output, own.data(), own.size());
    return absl::OkStatus();
  }
  if (IsOneNode()) return NodeReduceScatter(*team_, given, output, reduction, true, deadline);
  return all.size() <= kSmall
             ? HalvingReduceScatter(links_, input, counts, output, reduction, deadline)
             : RingReduceScatter(links_, input, counts, output, reduction, deadline);
}

absl::Status Group::MoveBroadcast(std::span<std::byte> data, int root, base::Deadline deadline) {
  if (IsOneNode()) return NodeBroadcast(*team_, data, root, deadline);
  return data.size() <= kSmall ? TreeBroadcast(links_, data, root, deadline)
                               : ChainBroadcast(links_, data, root, deadline);
}

absl::Status Group::MoveAllGather(const Chunks& output, base::Deadline deadline) {
  if (IsOneNode()) return NodeAllGather(*team_, output, deadline);
  return output.All().size() <= kSmall ? BruckAllGather(links_, output, deadline)
                                       : RingAllGather(links_, output, deadline);
}

absl::Status Group::MoveBarrier(base::Deadline deadline) {
  return IsOneNode() ? NodeBarrier(*team_, deadline) : DisseminationBarrier(links_, deadline);
}

// ---- The contract ----

absl::Status Group::AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                              base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("elements", {&count, 1}, 1));
  TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an all-reduce", data, count * SizeOf(type)));
  const Call call{.kind = Call::Kind::kAllReduce, .type = type, .op = op, .count = count};
  return Run(call, deadline, [&] {
    if (count == 0) return absl::OkStatus();
    return MoveAllReduce(Bytes(data), count, {type, op, size()}, deadline);
  });
}

absl::Status Group::ReduceScatter(const void* input, std::span<const size_t> counts, void* output,
                                  DataType type, ReduceOp op, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("counts", counts, size()));
  TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
  const size_t all = Chunks(nullptr, counts, 1).All().size();
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, all * SizeOf(type)));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output, counts[rank()] * SizeOf(type)));
  const Call call{.kind = Call::Kind::kReduceScatter,
                  .type = type,
                  .op = op,
                  .count = all,
                  .parts = HashOf(counts)};
  return Run(call, deadline, [&] {
    if (all == 0) return absl::OkStatus();
    return MoveReduceScatter(Bytes(input), counts, Bytes(output), {type, op, size()}, deadline);
  });
}

absl::Status Group::Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckRank("root", root, size()));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("a broadcast", data, bytes));
  const Call call{.kind = Call::Kind::kBroadcast, .peer = root, .count = bytes};
  return Run(call, deadline, [&] { return MoveBroadcast({Bytes(data), bytes}, root, deadline); });
}

absl::Status Group::GatherInto(const std::byte* input, const Chunks& output, Call call,
                               base::Deadline deadline) {
  const std::span<std::byte> own = output[rank()];
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, own.size()));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output.All().data(), output.All().size()));
  return Run(call, deadline, [&] {
    if (!own.empty() && own.data() != input) std::memmove(own.data(), input, own.size());
    return MoveAllGather(output, deadline);
  });
}

absl::Status Group::AllGather(const void* input, size_t bytes, void* output,
                              base::Deadline deadline) {
  const std::vector<size_t> sizes(size(), bytes);
  TUTTI_RETURN_IF_ERROR(CheckParts("sizes", sizes, size()));
  const Call call{.kind = Call::Kind::kAllGather, .count = bytes};
  return GatherInto(Bytes(input), Chunks(Bytes(output), sizes, 1), call, deadline);
}

absl::Status Group::AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                               base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("sizes", bytes, size()));
  const Chunks chunks(Bytes(output), bytes, 1);
  const Call call{
      .kind = Call::Kind::kAllGather, .count = chunks.All().size(), .parts = HashOf(bytes)};
  return GatherInto(Bytes(input), chunks, call, deadline);
}

absl::Status Group::AllToAllV(const void* input, std::span<const size_t> send_bytes, void* output,
                              std::span<const size_t> receive_bytes, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckAllToAll(send_bytes, receive_bytes, rank(), size()));
  const Chunks given(const_cast<std::byte*>(Bytes(input)), send_bytes, 1);
  const Chunks taken(Bytes(output), receive_bytes, 1);
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, given.All().size()));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output, taken.All().size()));
  return Run({.kind = Call::Kind::kAllToAll}, deadline, [&]() -> absl::Status {
    if (options_.check_calls) {
      TUTTI_RETURN_IF_ERROR(CompareParts(links_, send_bytes, receive_bytes, deadline));
    }
    TUTTI_RETURN_IF_ERROR(links_.ConnectAll(deadline));
    return PairwiseAllToAll(links_, given, taken, deadline);
  });
}

absl::Status Group::Barrier(base::Deadline deadline) {
  return Run({.kind = Call::Kind::kBarrier}, deadline, [&] { return MoveBarrier(deadline); });
}

absl::Status Group::Send(const void* data, size_t bytes, int to, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckOther("send to rank", to, rank(), size()));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("a message", data, bytes));
  const Call call{.kind = Call::Kind::kSend, .peer = to, .count = bytes, .number = collectives_};
  return RunPair("send", to, deadline, [&]() -> absl::Status {
    if (options_.check_calls) TUTTI_RETURN_IF_ERROR(ComparePair(links_, call, deadline));
    return links_.Send(to, {Bytes(data), bytes}, deadline);
  });
}

absl::Status Group::Receive(void* data, size_t bytes, int from, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckOther("receive from rank", from, rank(), size()));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("a message", data, bytes));
  const Call call{
      .kind = Call::Kind::kReceive, .peer = from, .count = bytes, .number = collectives_};
  return RunPair("receive", from, deadline, [&]() -> absl::Status {
    if (options_.check_calls) TUTTI_RETURN_IF_ERROR(ComparePair(links_, call, deadline));
    return links_.Receive(from, {Bytes(data), bytes}, deadline);
  });
}

absl::StatusOr<std::unique_ptr<Communicator>> Group::NewGroup(std::span<const int> ranks,
                                                              base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<int> members, MembersOf(ranks, rank(), size()));
  TUTTI_RETURN_IF_ERROR(status_);
  const Table& table = links_.connector().table();
  NewGroupPlan plan(std::move(members), rank());
  const Invitation own = plan.Own(table.ranks[rank()].address);
  for (const int partner : plan.Partners()) {
    Invitation other;
    TUTTI_RETURN_IF_ERROR(RunPair("new group", partner, deadline, [&] {
      return links_.Exchange(partner, std::as_bytes(std::span(&own, 1)), partner,
                             std::as_writable_bytes(std::span(&other, 1)), deadline);
    }));
    TUTTI_RETURN_IF_ERROR(plan.Accept(partner, other));
  }
  Membership& membership = links_.membership();
  auto group = plan.Form(options_, table, whole_, deadline, membership.ended_fd());
  if (absl::IsCancelled(group.status())) return End(membership.Check());
  return group;
}

absl::StatusOr<std::unique_ptr<SharedBuffer>> Group::AllocateShared(size_t bytes) {
  return team_ != nullptr ? team_->buffers().Allocate(bytes) : AllocatePlain(bytes);
}

// ---- Running ----

template <typename Collective>
absl::Status Group::Run(Call call, base::Deadline deadline, const Collective& collective) {
  if (!status_.ok()) return status_;
  const auto run = [&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(links_.membership().Begin(NameOf(call.kind)));
    call.number = collectives_++;
    if (options_.check_calls) TUTTI_RETURN_IF_ERROR(CompareCalls(links_, call, deadline));
    return collective();
  };
  return End(run());
}

template <typename Exchange>
absl::Status Group::RunPair(const char* what, int peer, base::Deadline deadline,
                            const Exchange& exchange) {
  if (!status_.ok()) return status_;
  const auto run = [&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(links_.membership().BeginPair(what, peer, links_.IsConnected(peer)));
    TUTTI_RETURN_IF_ERROR(links_.Connect(peer, deadline));
    return exchange();
  };
  return End(run());
}

absl::Status Group::End(absl::Status status) {
  // Calls that differ have been compared to the end: whoever knows it may leave.
  if (status.ok() || absl::IsFailedPrecondition(status)) links_.membership().End();
  const std::optional<int> lost = LostRank(status);
  if (lost.has_value() && !whole_.empty()) {
    status = ErrorAboutRank(
        *lost, status.code(),
        absl::StrCat(std::string(status.message()), " (rank ", *lost, " of this group is rank ",
                     whole_[*lost], " of the whole one)"));
  }
  if (status.ok()) return status;
  // Ranks that are late may yet write into what this one's caller will use (SharedBuffers).
  if (team_ != nullptr) team_->buffers().Detach();
  return status_ = status;
}

}  // namespace tutti::comm
