// NcclGroup runs collectives on CUDA memory, by NCCL, among the ranks of a Communicator. NCCL
// itself knows no deadline and names nobody: a lost rank leaves a kernel that waits for ever on
// every GPU. So the Communicator's membership judges: it hears of a loss, NCCL's communicator is
// aborted, which ends the kernels, and the error names the rank (LostRank).
//
// Calls put work on the caller's stream and return when NCCL has taken it. The caller waits for its
// stream through Await, which watches over the group meanwhile:
//
//   group->AllReduce(input, output, count, type, op, stream, deadline);
//   cudaEventRecord(event, stream);
//   group->Await([&] { return cudaEventQuery(event) != cudaErrorNotReady; }, deadline);
//
// An error ends the group: later calls return it at once. Thread-compatible, as the Communicator
// is, which must outlive it and whose device is the one that is current for every call.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/collective/nccl/nccl_library.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

struct NcclReduction {
  nccl::Type type;
  nccl::Op op;
};

class NcclGroup {
 public:
  // Called by all ranks of `group`, which brings NCCL's unique id across. `control` is how `group`
  // hears of losses (group.control()); none in a group of one.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> Create(
      Communicator& group, std::shared_ptr<const NcclLibrary> library, base::Deadline deadline);
  ~NcclGroup();

  // Device pointers; `output` may be `input` where both have the same length. Types: all but int16,
  // which NCCL cannot reduce; Adasum is Unimplemented; bool as in Communicator.
  absl::Status AllReduce(const void* input, void* output, size_t count, DataType type, ReduceOp op,
                         nccl::CudaStream stream, base::Deadline deadline);
  // `input` has size * count elements, `output` gets this rank's `count`.
  absl::Status ReduceScatter(const void* input, void* output, size_t count, DataType type,
                             ReduceOp op, nccl::CudaStream stream, base::Deadline deadline);
  // `input` is read on the root alone, and may be `output`.
  absl::Status Broadcast(const void* input, void* output, size_t bytes, int root,
                         nccl::CudaStream stream, base::Deadline deadline);
  // Does what `calls` asks of this group, as one: NCCL runs them in one kernel where it can.
  absl::Status Together(const std::function<absl::Status()>& calls, base::Deadline deadline);
  absl::Status AllGather(const void* input, size_t bytes, void* output, nccl::CudaStream stream,
                         base::Deadline deadline);
  absl::Status Send(const void* data, size_t bytes, int to, nccl::CudaStream stream,
                    base::Deadline deadline);
  absl::Status Receive(void* data, size_t bytes, int from, nccl::CudaStream stream,
                       base::Deadline deadline);

  // Waits until done() says so. Returns the error of the group, or DeadlineExceeded, after which
  // the work on the stream has been aborted.
  absl::Status Await(const std::function<bool()>& done, base::Deadline deadline);
  // Does one look of Await's, for who has other things to do meanwhile: the error that ends the
  // group, of which the work on the stream is then over, if `done` does not come true.
  absl::Status Look(const std::function<bool()>& done, base::Deadline deadline);

 private:
  NcclGroup(Communicator& group, std::shared_ptr<const NcclLibrary> library);
  absl::StatusOr<NcclReduction> ReductionOf(DataType type, ReduceOp op) const;
  absl::Status Start(const nccl::UniqueId& id, base::Deadline deadline);
  // Follows a call until NCCL has taken it.
  absl::Status Settle(nccl::Result result, const char* what, base::Deadline deadline);
  absl::Status Watch(const char* what, base::Deadline deadline, const std::function<bool()>& done);
  absl::Status LookOnce(const char* what, base::Deadline deadline,
                        const std::function<bool()>& done);
  absl::Status Fail(absl::Status error);

  Communicator& group_;
  const std::shared_ptr<const NcclLibrary> library_;
  nccl::Comm comm_ = nullptr;
  absl::Status status_;
};

// Translates both; Unimplemented when NCCL cannot do it, InvalidArgument when nobody can.
absl::StatusOr<NcclReduction> ToNccl(DataType type, ReduceOp op);

}  // namespace tutti::comm
