// A group of ranks and its collectives. Every rank of the group calls the same collectives in the
// same order with the same sizes; every call takes a deadline; an error names the rank that caused
// it (LostRank) and ends the group: later calls return the same error at once.
//
// Thread-compatible: one thread at a time; parallel/ gives it a thread of its own. Buffers are the
// caller's, are used in place, and may be touched again when the call has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::comm {

enum class DataType { kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt8, kUint8 };
enum class ReduceOp { kSum, kMean, kMin, kMax, kProduct };

size_t SizeOf(DataType type);

// Where a rank stands and how the others find it: the environment contract (SPEC J6).
struct GroupOptions {
  int rank = 0;
  int size = 1;
  int node = 0;  // ranks of one node share memory, others talk over TCP
  // This node's own numeric address, from which it connects and on which it listens. "": the one
  // from which the master is reached.
  std::string address = "127.0.0.1";
  std::string master_address = "127.0.0.1";  // rank 0 listens here for the rendezvous
  int master_port = 6105;
  std::string token;  // the job's secret; a peer that does not prove it is refused
  absl::Duration connect_timeout = absl::Seconds(60);
  // How long a silent peer is believed to live. Bounds the time from a rank's loss to the error. A
  // rank that computes is not silent (a thread of its own beats for it); a stopped process is.
  absl::Duration peer_timeout = absl::Seconds(4);
  enum class Transport { kAuto, kTcp, kSharedMemory } transport = Transport::kAuto;
};

// From RANK, WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, TUTTI_NODE_ADDRESS, TUTTI_JOB_TOKEN
// and TUTTI_TRANSPORT; one rank when RANK is not set. InvalidArgument names the variable that is
// wrong.
absl::StatusOr<GroupOptions> GroupOptionsFromEnvironment();

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

  // In place over `count` elements: every rank ends with the same bytes. The order of the additions
  // depends on the sizes alone, so that equal inputs give equal bits at every run. 16-bit floating
  // point is added in 32 bits; integers wrap around, and their mean is the sum divided toward zero.
  virtual absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                                 base::Deadline deadline) = 0;
  virtual absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) = 0;
  // `input` (bytes) of every rank, in rank order, into `output` (size() * bytes).
  virtual absl::Status AllGather(const void* input, size_t bytes, void* output,
                                 base::Deadline deadline) = 0;
  virtual absl::Status Barrier(base::Deadline deadline) = 0;
};

// Meets the other ranks and connects to them. Unavailable or DeadlineExceeded name the ranks that
// did not come; PermissionDenied says that the token is wrong. A group of one needs no network.
absl::StatusOr<std::unique_ptr<Communicator>> JoinGroup(const GroupOptions& options);

// The rank that a collective's error is about, if it is about one.
std::optional<int> LostRank(const absl::Status& status);

}  // namespace tutti::comm
