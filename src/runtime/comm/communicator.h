// Communicator is a group of ranks and its collectives. Every rank of the group calls the same
// collectives in the same order with the same sizes; every call takes a deadline; an error names
// the rank that caused it (LostRank) and ends the group: later calls return the same error at once.
// Arguments that make no sense by themselves are InvalidArgument before anything is sent, and end
// nothing. (Above this: stream.h for asynchronous calls, negotiation/ for ranks whose order
// differs.)
//
// Thread-compatible: one thread at a time; different groups are independent. Buffers are the
// caller's and may be touched again when the call has returned. Input and output of one call do not
// overlap, save where a function says so.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/data_type.h"
#include "runtime/comm/elastic.h"
#include "runtime/comm/group_options.h"
#include "runtime/comm/shared_buffer.h"

namespace tutti::comm {

struct Generation;  // rendezvous/membership/generation.h

class Control;

// Says where a rank stands among the nodes of its group.
struct Placement {
  int local_rank = 0;  // among the ranks of its node
  int local_size = 1;
  int node_rank = 0;  // of its node among the nodes, in the order of their first ranks
  int node_count = 1;
  bool homogeneous = true;  // every node has as many ranks
};

// A deadline that runs out is an error about the rank that was missed (asked of all, so it comes up
// to peer_timeout / 4 late when one does not answer), on every rank.
class Communicator {
 public:
  // Leaves the group. Others that still need this rank get an error that names it; the tail of a
  // collective that this rank has finished still reaches them (rank 0 waits for that, at most
  // peer_timeout).
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Placement placement() const = 0;
  // Carries what a layer above says beside the collectives (rendezvous/control.h); it lives as
  // long as this. It is null in a group of one.
  virtual Control* control() { return nullptr; }

  // Reduces `count` elements in place: every rank ends with the same bytes. The order of the
  // additions depends on the sizes and the algorithm alone, never on timing.
  virtual absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                                 base::Deadline deadline) = 0;

  // `input` has as many elements as the sum of `counts`, of which counts[r], in rank order, are
  // rank r's; `output` gets this rank's, reduced. In place when `output` is where this rank's part
  // lies in `input`, the rest of which is unchanged.
  virtual absl::Status ReduceScatter(const void* input, std::span<const size_t> counts,
                                     void* output, DataType type, ReduceOp op,
                                     base::Deadline deadline) = 0;

  virtual absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) = 0;

  // Puts the `input` of every rank, in rank order, into `output`: `bytes` of each, or bytes[r] of
  // rank r, which all ranks know. In place when `input` is where this rank's part lies in `output`.
  virtual absl::Status AllGather(const void* input, size_t bytes, void* output,
                                 base::Deadline deadline) = 0;
  virtual absl::Status AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                                  base::Deadline deadline) = 0;

  // This rank's part for rank r has send_bytes[r] bytes, rank r's for this one receive_bytes[r];
  // they lie in rank order, without gaps. What a rank sends to another is what that one receives.
  virtual absl::Status AllToAllV(const void* input, std::span<const size_t> send_bytes,
                                 void* output, std::span<const size_t> receive_bytes,
                                 base::Deadline deadline) = 0;

  // Returns when every rank has called it.
  virtual absl::Status Barrier(base::Deadline deadline) = 0;

  // Send goes from one rank to another, which calls Receive with as many bytes; a pair's messages
  // keep their order. Either may wait for the other side. Both stand at the same place among the
  // two ranks' collectives; other ranks know nothing of it.
  virtual absl::Status Send(const void* data, size_t bytes, int to, base::Deadline deadline) = 0;
  virtual absl::Status Receive(void* data, size_t bytes, int from, base::Deadline deadline) = 0;

  // Makes the group of these ranks of this one, numbered anew in ascending order. Exactly they call
  // it, at the same place among their calls. It has connections and a membership of its own:
  // another thread may use it at the same time, and its end is not this group's, nor the reverse;
  // it may outlive this group. Its errors tell a rank by its number in the new group and in the
  // whole one; LostRank is the new number.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> NewGroup(std::span<const int> ranks,
                                                                 base::Deadline deadline) = 0;

  // Allocates memory that the ranks of this node reach directly: an all-reduce, reduce-scatter,
  // broadcast or all-gather of data in it needs no copy in between (where all ranks' data lie in
  // such buffers). This rank calls it alone. It may outlive the group and is plain memory then;
  // also from the first error on, so that ranks that are late cannot write into it any more.
  virtual absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocateShared(size_t bytes) = 0;

  // Re-forms an elastic group (elastic.h). After a loss, or to let newcomers in: leaves this group,
  // which is good for nothing afterwards, and forms the next generation with the members that call
  // it too and those who came by JoinRunning. Members keep their order, newcomers follow. Errors,
  // after which it may be called again: FailedPrecondition, fewer than terms.min_ranks, or this
  // group is not elastic, or it has gone on without this rank; Unavailable, members that did not
  // come could have gone on elsewhere.
  absl::StatusOr<std::unique_ptr<Communicator>> Reform(const ReformOptions& terms = {});
  // Counts the newcomers that wait to be taken in; on other ranks than 0 as of the last heartbeat.
  int WaitingNewcomers() const;
  // Counts how often the group has re-formed.
  int generation() const;

  void SetGeneration(std::shared_ptr<Generation> generation) {
    generation_ = std::move(generation);
  }

 private:
  std::shared_ptr<Generation> generation_;  // of an elastic group
};

// Meets the other ranks and connects to them. Unavailable or DeadlineExceeded name the ranks that
// did not come; PermissionDenied says that the token is wrong. A group of one needs no network.
absl::StatusOr<std::unique_ptr<Communicator>> JoinGroup(const GroupOptions& options);

// Returns the rank that a collective's error is about, if it is about one.
std::optional<int> LostRank(const absl::Status& status);

}  // namespace tutti::comm
