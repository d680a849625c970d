// RunResponse runs what was agreed: one response after the other as plain collectives of a
// Communicator. Which calls a response becomes depends on the response alone, so all ranks make the
// same ones.
//
// All-reduces of small tensors are packed into one buffer, scaled on the way in and out, one
// pass each; a tensor from kWorthAlone on, or one that is alone, is reduced in its output's memory.
// What is encoded on its way is alone.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/collective/nccl/nccl_group.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/execution/operation.h"
#include "runtime/comm/negotiation/execution/tensor_timeline.h"
#include "runtime/comm/shared_buffer.h"

namespace tutti::comm {

inline constexpr int kHost = -1;

// What a rank brings to a tensor: its request, and the memory. Owned by its owner until the
// operation is done; inputs and outputs have one pointer a part.
struct Submission {
  Request request;
  std::vector<int64_t> rows;  // kAllGather, kAllToAll: the first dimension of every part
  std::vector<const void*> inputs;
  std::vector<void*> outputs;  // null (or none): `allocate` gives it, or else the operation owns it
  Allocate allocate;           // may be null
  std::vector<int64_t> splits;  // kAllToAll: rows to every rank of the set
  // For tensors in a GPU's memory (request.device), `device` is the GPU, and `ready` is an event of
  // the caller's (a cudaEvent_t) after which the inputs are there, or null; the event must live
  // until the operation is done. For a join, `device` is the GPU on which this rank takes part
  // meanwhile. The caller itself multiplies by factors.
  int device = kHost;
  void* ready = nullptr;
  // What rounding has lost so far, if the tensors are encoded on their way. Only one outstanding
  // operation at a time may have it. Null: what is lost stays lost.
  std::shared_ptr<ErrorFeedback> feedback;
};

// A submission whose turn has come.
struct Task {
  Submission submission;
  std::shared_ptr<Operation> operation;
  absl::Duration since;  // when it was submitted
  absl::Status fault;    // of this rank alone: the collective goes on, the operation fails
};

// Memory for packing, which the ranks of the node reach directly. It grows.
class Scratch {
 public:
  absl::StatusOr<std::byte*> Get(Communicator& group, size_t bytes);

 private:
  static constexpr size_t kLeast = 1 << 20;
  std::unique_ptr<SharedBuffer> buffer_;
};

// A process set as its rank sees it.
struct Team {
  std::vector<int> ranks;               // of the world, ascending
  std::shared_ptr<Communicator> group;  // null where this rank is not in it
  Scratch scratch;
  std::array<std::unique_ptr<CompressedAllReduce>, 3> encoded;  // by encoding, made when needed
  std::unique_ptr<NcclGroup> device;  // the same ranks, on GPUs; made when needed
  absl::Status device_fault;          // why there is none, for all alike
};

// Runs a response: `tasks[i]` belongs to units[i], and is null where this rank has joined
// (check_response.h). Ends the operations, save where an error is returned: then the team's group
// is at its end. `timeline` may be null.
absl::Status RunResponse(Team& team, const Response& response,
                         const std::vector<std::unique_ptr<Task>>& tasks, Timeline* timeline,
                         base::Deadline deadline);

}  // namespace tutti::comm
