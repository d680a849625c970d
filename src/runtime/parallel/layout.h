// Layout tells who does what among the ranks of a run: where a rank stands on each axis of the mesh
// of those that train, and which ranks serve them. Plain data.
//
//   mesh {pipeline: 2, data: 3}        replica 0   replica 1   replica 2
//                            stage 0     rank 0      rank 1      rank 2
//                            stage 1     rank 3      rank 4      rank 5
//
//   mesh {servers: 2, data: 4}         ranks 0 to 3 train, ranks 4 and 5 serve them
//
// Axes run from the outermost to the innermost, along which neighbours are neighbours: replicas of
// a stage, so that on nodes of several ranks their sums, which are larger than what stages send
// each other, stay on a node (as in Megatron-LM and torchtitan).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"

namespace tutti::parallel {

// What a user asks for. The number of ranks is the product of the first two, and the servers.
struct Mesh {
  int64_t data = 0;      // replicas; 0: as many as the ranks give
  int64_t pipeline = 1;  // stages, of which each has a part of the layers
  int64_t servers = 0;   // of parameters: the last ranks
  bool operator==(const Mesh&) const = default;
};

// When ranks that each have the whole model hear of each other.
struct Exchange {
  // "steps": in each, which is synchronous data parallelism. "local" and "diloco": every so many
  // steps, and what follows are their terms (LocalSgdOptions).
  std::string sync = "steps";
  int64_t every = 50, fragments = 1, delay = 0;
  double mix = 0.5, rate = 1, momentum = 0;
  std::string send = "fp32";
  // Of servers (ParameterServersOptions).
  int64_t staleness = 0;

  bool is_local() const { return sync != "steps"; }
  bool operator==(const Exchange&) const = default;
};

// How stages of a pipeline hear of what their outputs led to.
struct Decoupling {
  // "exact": in each step, from the stage behind. "synthetic" and "delayed": later, and what
  // follows are their terms (DecoupledOptions).
  std::string gradients = "exact";
  std::string predictor = "linear";
  int64_t width = 0;
  std::string labels = "auto";
  double predictor_rate = 1e-3;
  int64_t waiting = 2;
  std::string full = "wait";

  bool is_on() const { return gradients != "exact"; }
  bool operator==(const Decoupling&) const = default;
};

// All of it: `parallel` of a recipe.
struct Parallelism {
  Mesh mesh;
  Exchange exchange;
  Decoupling decoupling;
  bool operator==(const Parallelism&) const = default;
};

struct Axis {
  std::string name;
  int size = 1;
};

// Ranks along it have the same part of the model, and other parts of each mini-batch.
constexpr absl::string_view kDataAxis = "data";
// Ranks along it have the same part of each mini-batch, and other layers of the model.
constexpr absl::string_view kStageAxis = "stage";

struct Layout {
  // A rank that trains computes gradients; one that serves holds what those that train ask it for.
  enum class Role { kTrains, kServes };

  int rank = 0, world_size = 1;
  Role role = Role::kTrains;
  // Of the ranks that train, which are the first; those that serve come behind them.
  std::vector<Axis> axes;
  // Tells whether a step is one rank's, which takes all its samples, and not shared by all.
  bool takes_turns = false;
  // Tells whether targets go from stage to stage beside the activations.
  bool targets_travel = false;

  // Return how long an axis is and where this rank stands on it; 1 and 0 of one that is none.
  int SizeOf(absl::string_view axis) const;
  int IndexOf(absl::string_view axis) const { return IndexOf(axis, rank); }
  // Returns where another rank stands on it; -1 of one that serves.
  int IndexOf(absl::string_view axis, int other) const;
  // Returns the rank that stands there on this axis, and where this one, which trains, does on all
  // others.
  int RankAt(absl::string_view axis, int index) const;
  // Returns the ranks that differ from this one, which trains, on this axis alone, itself among
  // them, in order.
  std::vector<int> Along(absl::string_view axis) const;

  int replica() const { return IndexOf(kDataAxis); }
  int replicas() const { return SizeOf(kDataAxis); }
  int stage() const { return IndexOf(kStageAxis); }
  int stages() const { return SizeOf(kStageAxis); }
  // Return into how many parts the samples of a step are split, and which one is this rank's.
  int shares() const { return takes_turns ? 1 : replicas(); }
  int share() const { return takes_turns ? 0 : replica(); }
  bool trains() const { return role == Role::kTrains; }
  // Tells whether it takes batches of its source to train.
  bool is_fed() const { return trains() && (stage() == 0 || !targets_travel); }
  bool reads_inputs() const { return trains() && stage() == 0; }
  bool has_outputs() const { return trains() && stage() == stages() - 1; }
  // Tells whether it writes files and talks to the user.
  bool reports() const { return rank == 0; }
};

// Returns where a rank stands. InvalidArgument says which mesh is not of so many ranks, and which
// ones would be.
absl::StatusOr<Layout> LayOut(const Mesh& mesh, int rank, int world_size);

// Returns that of a rank that holds the whole model, as all of its group do.
Layout DataLayout(const comm::Communicator& group);

// Makes the group of this rank's neighbours along an axis; all of them call it.
absl::StatusOr<std::unique_ptr<comm::Communicator>> GroupAlong(absl::string_view axis,
                                                               const Layout& layout,
                                                               comm::Communicator& ranks,
                                                               base::Deadline deadline);

}  // namespace tutti::parallel
