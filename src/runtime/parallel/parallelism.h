// Parallelism is what a user asks for of how ranks train together: `parallel` of a recipe. Plain
// data.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/parallel/layout.h"

namespace tutti::parallel {

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

struct Parallelism {
  Mesh mesh;
  Exchange exchange;
  bool operator==(const Parallelism&) const = default;
};

}  // namespace tutti::parallel
