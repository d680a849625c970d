// Layout tells who does what among the ranks of a run: the mesh of pipeline stages and of replicas
// of each stage. Plain data.
//
//   mesh {pipeline: 2, data: 3}        replica 0   replica 1   replica 2
//                            stage 0     rank 0      rank 1      rank 2
//                            stage 1     rank 3      rank 4      rank 5
//
// Replicas of a stage are neighbours, so that on nodes of several ranks their sums, which are
// larger than what stages send each other, stay on a node (as in Megatron-LM and torchtitan).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace tutti::parallel {

// What a user asks for. The product is the number of ranks.
struct Mesh {
  int64_t data = 0;      // replicas; 0: as many as the ranks give
  int64_t pipeline = 1;  // stages, of which each has a part of the layers
  bool operator==(const Mesh&) const = default;
};

struct Layout {
  int rank = 0, world_size = 1;
  int replica = 0, replicas = 1;  // which part of each mini-batch it takes, of how many
  int stage = 0, stages = 1;      // which part of the model it holds, of how many

  bool reads_inputs() const { return stage == 0; }
  bool has_outputs() const { return stage == stages - 1; }
  // Tells whether it is the one that writes what all replicas of its stage hold.
  bool writes_state() const { return replica == 0; }
  // Tells whether it writes files and talks to the user.
  bool reports() const { return rank == 0; }

  int RankOf(int other_stage, int other_replica) const {
    return other_stage * replicas + other_replica;
  }
  int StageOf(int other_rank) const { return other_rank / replicas; }
};

// Returns where a rank stands. InvalidArgument says which product of the mesh is not the number of
// ranks, and which meshes would be.
absl::StatusOr<Layout> LayOut(const Mesh& mesh, int rank, int world_size);

// Returns that of a rank that holds the whole model, as all of its group do.
Layout DataLayout(const comm::Communicator& group);

}  // namespace tutti::parallel
