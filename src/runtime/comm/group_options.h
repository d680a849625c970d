// GroupOptions says which rank this is, how it finds the others and how they talk;
// GroupOptionsFromEnvironment reads it from the environment contract.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tutti::comm {

struct GroupOptions {
  int rank = 0;
  int size = 1;
  int node = 0;  // ranks of one node share memory, others talk over the network
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
  // kAuto: shared memory within a node, TCP between nodes.
  enum class Transport { kAuto, kTcp, kSharedMemory, kUcx } transport = Transport::kAuto;
  int tcp_streams = 1;   // between two ranks of different nodes; 0: chosen by measurement
  bool encrypt = false;  // TLS on the data path between nodes
  // The algorithm is chosen by sizes and placement alone and never by measurement, so that equal
  // inputs give equal bits at every run. (Within a run they do in any case.)
  bool deterministic = false;
  // Before every call the ranks compare what they are calling: those that differ in kind, sizes,
  // type, operation or root get FailedPrecondition, which says who called what, instead of wrong
  // bytes or a hang. Costs one small exchange per call.
  bool check_calls = false;
  // The group can re-form (elastic.h); every rank listens for that (rejoin_listener.h). Newcomers
  // find one in this file, which rank 0 writes whenever the group has formed, or else at one of
  // these places
  // ("address:port"), or else at the master's address.
  bool elastic = false;
  std::string group_file;
  std::vector<std::string> members;
};

// Reads them from RANK, WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, TUTTI_NODE_ADDRESS,
// TUTTI_JOB_TOKEN, TUTTI_TRANSPORT (auto, tcp, shm, ucx), TUTTI_COMM_STREAMS and, each 0 or 1,
// TUTTI_COMM_TLS, TUTTI_COMM_DETERMINISTIC, TUTTI_COMM_CHECK, TUTTI_ELASTIC; TUTTI_GROUP_FILE,
// TUTTI_GROUP_MEMBERS (separated by commas); one rank when RANK is not set. InvalidArgument names
// the variable that is wrong.
absl::StatusOr<GroupOptions> GroupOptionsFromEnvironment();

}  // namespace tutti::comm
