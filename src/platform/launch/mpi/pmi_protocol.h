// PmiProtocol answers PMI-1, by which the ranks of MPICH, Intel MPI and their relatives learn who
// they are and where the others are: a space of keys and values that all put to and get from, and a
// barrier between. Each rank has a connection over which it sends lines and gets a line for each.
// Pure: see pmi_server.h for the connections. Not thread-safe.
//
//   rank: cmd=initack pmiid=ID         -> cmd=initack rc=0, then cmd=set size=, rank=, debug=
//         cmd=init …, get_maxes, get_appnum, get_my_kvsname, get_universe_size
//         cmd=put kvsname= key= value= -> cmd=put_result rc=0
//         cmd=get kvsname= key=        -> cmd=get_result rc=0 value=, or rc=-1
//         cmd=barrier_in               -> cmd=barrier_out, once all ranks are in it
//         cmd=finalize                 -> cmd=finalize_ack
//         cmd=abort exitcode=          (none: it is to be ended)
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::launch {

struct PmiReply {
  int client;
  std::string line;  // without its newline
};

// A rank that has called MPI_Abort, or that has gone without cmd=finalize, for which the others
// would wait for ever.
struct PmiFailure {
  int rank;
  std::optional<int> abort_code;  // of MPI_Abort, if it has called that
};

class PmiProtocol {
 public:
  // `space` names the keys and values, at most 255 characters. No two worlds may share it: MPICH
  // names its shared memory by it, and who opens another world's is lost. `first_id`: the id of
  // rank 0, which strangers do not know; the other ranks have those that follow it.
  PmiProtocol(int world_size, std::string space, int first_id)
      : world_size_(world_size), space_(std::move(space)), first_id_(first_id) {}

  // Adds to `replies` what is to be sent once `client` (any number that names its connection) has
  // sent `line`. False if it is to be cut off: it says what this server does not know, has an id
  // that no rank has, or one of a rank that is here.
  bool HandleCommand(int client, absl::string_view line, std::vector<PmiReply>& replies);
  // The connection of `client` has ended. The rank may come again: a shell may run one program
  // after another.
  void Forget(int client);
  bool HasRanks() const { return !ranks_.empty(); }
  // Returns whether `client` is a rank: it has said an id.
  bool IsRank(int client) const { return ranks_.contains(client); }
  // Returns the first rank that has called MPI_Abort, for good: that ends a world, whatever its
  // ranks do next, and MPICH's go on. Else the first that has gone and not come again, while others
  // have yet to finalize.
  std::optional<PmiFailure> failure() const;

 private:
  bool Admit(int client, absl::string_view id, std::vector<PmiReply>& replies);
  bool Answer(int client, absl::string_view command,
              const std::map<std::string, std::string>& words, std::vector<PmiReply>& replies);
  std::string Put(const std::map<std::string, std::string>& words);
  std::string Get(const std::map<std::string, std::string>& words) const;
  void Enter(int client, std::vector<PmiReply>& replies);
  void Abort(int client, const std::string& code);

  const int world_size_;
  const std::string space_;
  const int first_id_;
  std::map<int, int> ranks_;         // by client
  std::set<int> in_barrier_;         // clients
  std::set<int> finalized_;          // clients
  std::vector<int> left_;            // ranks that have gone, by time
  std::optional<PmiFailure> abort_;  // the first
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;  // of them
};

}  // namespace tutti::launch
