// A group of one rank: no network, no thread. Collectives check their arguments as in any group and
// copy what has to be copied.
#pragma once

#include "runtime/comm/collective/node/plain_buffer.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

class GroupOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Placement placement() const override { return {}; }
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
  absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t bytes) override {
    return AllocatePlain(bytes);
  }
};

}  // namespace tutti::comm
