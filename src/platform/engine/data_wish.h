// Decides whether a job is to be kept to the nodes that have its data. Where an engine's scheduler
// knows no soft wish for nodes, as Slurm's, a wish leaves all other nodes out, and is lifted soon
// if the job has not begun by then. It is made where it should cost no wait at all: where the nodes
// have room now, also for the others that wish for nodes and wait. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace tutti::engine {

// A node as its scheduler sees it.
struct NodeWithRoom {
  std::string name;
  bool is_whole = false;  // nothing runs on it, and it can be given away now
  int idle_cpus = 0;      // 0 of one that cannot
};

// DataWish says what a job asks of each of its nodes, and which nodes have its data.
struct DataWish {
  std::vector<std::string> nodes;  // empty: it has no wish
  // These nodes are free in a moment: they count as if they had room for one such job.
  std::vector<std::string> being_left;
  std::string partition;  // "": the default one
  int count = 1;          // of nodes that it asks for
  int cpus = 1;           // of each; 0: all
};

// Returns the nodes to leave out; none where the wish is not to be made: it could make the job
// wait, there are no other nodes, or their names would not fit into a command. `claimed`: how many
// nodes, or shares of nodes, others have been promised that wait.
std::vector<std::string> NodesToLeaveOut(const std::vector<NodeWithRoom>& all, const DataWish& wish,
                                         int claimed);

}  // namespace tutti::engine
