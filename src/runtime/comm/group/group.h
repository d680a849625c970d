// Group implements Communicator for more than one rank: it checks what is asked of it, brackets
// every call in its membership, and chooses the algorithm. The algorithms are in collective/.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/comm/collective/call.h"
#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/node/node_team.h"
#include "runtime/comm/collective/reduction/reduce.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/group/two_level.h"

namespace tutti::comm {

class Group final : public Communicator {
 public:
  // `options` are this rank's; `whole[r]` is rank r's number in the group that this one is a part
  // of, empty if of none. `team`: those that share memory with this rank, null if nobody does.
  Group(Links links, std::unique_ptr<NodeTeam> team, GroupOptions options, std::vector<int> whole);

  int rank() const override { return links_.rank(); }
  int size() const override { return links_.size(); }
  Placement placement() const override { return placement_; }
  Control* control() override { return &links_.membership(); }

  absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                         base::Deadline deadline) override;
  absl::Status ReduceScatter(const void* input, std::span<const size_t> counts, void* output,
                             DataType type, ReduceOp op, base::Deadline deadline) override;
  absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) override;
  absl::Status AllGather(const void* input, size_t bytes, void* output,
                         base::Deadline deadline) override;
  absl::Status AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                          base::Deadline deadline) override;
  absl::Status AllToAllV(const void* input, std::span<const size_t> send_bytes, void* output,
                         std::span<const size_t> receive_bytes, base::Deadline deadline) override;
  absl::Status Barrier(base::Deadline deadline) override;
  absl::Status Send(const void* data, size_t bytes, int to, base::Deadline deadline) override;
  absl::Status Receive(void* data, size_t bytes, int from, base::Deadline deadline) override;
  absl::StatusOr<std::unique_ptr<Communicator>> NewGroup(std::span<const int> ranks,
                                                         base::Deadline deadline) override;
  absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t bytes) override;

 private:
  // Chooses the algorithm, for arguments that have been checked.
  absl::Status MoveAllReduce(std::byte* data, size_t count, const Reduction& reduction,
                             base::Deadline deadline);
  absl::Status MoveReduceScatter(const std::byte* input, std::span<const size_t> counts,
                                 std::byte* output, const Reduction& reduction,
                                 base::Deadline deadline);
  absl::Status MoveBroadcast(std::span<std::byte> data, int root, base::Deadline deadline);
  absl::Status MoveAllGather(const Chunks& output, base::Deadline deadline);
  absl::Status MoveBarrier(base::Deadline deadline);

  // Runs it as the next collective of the group, or as an exchange with `peer` alone, and keeps the
  // error that ends the group.
  template <typename Collective>
  absl::Status Run(Call call, base::Deadline deadline, const Collective& collective);
  template <typename Exchange>
  absl::Status RunPair(const char* what, int peer, base::Deadline deadline,
                       const Exchange& exchange);
  absl::Status End(absl::Status status);
  absl::Status GatherInto(const std::byte* input, const Chunks& output, Call call,
                          base::Deadline deadline);

  // Returns whether all ranks share memory, so that nothing goes over links.
  bool IsOneNode() const { return team_ != nullptr && team_->size() == size(); }

  Links links_;
  const std::unique_ptr<NodeTeam> team_;
  const absl::StatusOr<std::unique_ptr<TwoLevel>> two_level_;  // null where there is one level
  const GroupOptions options_;
  const std::vector<int> whole_;
  const Placement placement_;
  uint64_t collectives_ = 0;
  absl::Status status_;
};

}  // namespace tutti::comm
