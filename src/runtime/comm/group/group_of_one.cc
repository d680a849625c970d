#include "runtime/comm/group/group_of_one.h"

#include <cstring>
#include <memory>

#include "base/status.h"
#include "runtime/comm/collective/call.h"
#include "runtime/comm/collective/node/plain_buffer.h"
#include "runtime/comm/group/new_group.h"

namespace tutti::comm {
namespace {

absl::Status Copy(const void* input, size_t bytes, void* output) {
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, bytes));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output, bytes));
  if (bytes > 0 && input != output) std::memcpy(output, input, bytes);
  return absl::OkStatus();
}

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
    return MakeGroupOfOne();
  }

  absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t bytes) override {
    return AllocatePlain(bytes);
  }
};

}  // namespace

std::unique_ptr<Communicator> MakeGroupOfOne() { return std::make_unique<GroupOfOne>(); }

}  // namespace tutti::comm
