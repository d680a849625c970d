#include "runtime/comm/group/group_of_one.h"

#include <cstring>

#include "base/status.h"
#include "runtime/comm/collective/call.h"
#include "runtime/comm/group/new_group.h"

namespace tutti::comm {
namespace {

absl::Status Copy(const void* input, size_t bytes, void* output) {
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an input", input, bytes));
  TUTTI_RETURN_IF_ERROR(CheckBuffer("an output", output, bytes));
  if (bytes > 0 && input != output) std::memcpy(output, input, bytes);
  return absl::OkStatus();
}

}  // namespace

absl::Status GroupOfOne::AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                                   base::Deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("elements", {&count, 1}, 1));
  TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
  return CheckBuffer("an all-reduce", data, count * SizeOf(type));
}

absl::Status GroupOfOne::ReduceScatter(const void* input, std::span<const size_t> counts,
                                       void* output, DataType type, ReduceOp op, base::Deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("counts", counts, 1));
  TUTTI_RETURN_IF_ERROR(CheckReduction(type, op));
  return Copy(input, counts[0] * SizeOf(type), output);
}

absl::Status GroupOfOne::Broadcast(void* data, size_t bytes, int root, base::Deadline) {
  TUTTI_RETURN_IF_ERROR(CheckRank("root", root, 1));
  return CheckBuffer("a broadcast", data, bytes);
}

absl::Status GroupOfOne::AllGather(const void* input, size_t bytes, void* output, base::Deadline) {
  return Copy(input, bytes, output);
}

absl::Status GroupOfOne::AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                                    base::Deadline) {
  TUTTI_RETURN_IF_ERROR(CheckParts("sizes", bytes, 1));
  return Copy(input, bytes[0], output);
}

absl::Status GroupOfOne::AllToAllV(const void* input, std::span<const size_t> send_bytes,
                                   void* output, std::span<const size_t> receive_bytes,
                                   base::Deadline) {
  TUTTI_RETURN_IF_ERROR(CheckAllToAll(send_bytes, receive_bytes, 0, 1));
  return Copy(input, send_bytes[0], output);
}

absl::Status GroupOfOne::Barrier(base::Deadline) { return absl::OkStatus(); }

absl::Status GroupOfOne::Send(const void*, size_t, int to, base::Deadline) {
  return CheckOther("send to rank", to, 0, 1);
}

absl::Status GroupOfOne::Receive(void*, size_t, int from, base::Deadline) {
  return CheckOther("receive from rank", from, 0, 1);
}

absl::StatusOr<std::unique_ptr<Communicator>> GroupOfOne::NewGroup(std::span<const int> ranks,
                                                                   base::Deadline) {
  TUTTI_RETURN_IF_ERROR(MembersOf(ranks, 0, 1).status());
  return std::make_unique<GroupOfOne>();
}

}  // namespace tutti::comm
