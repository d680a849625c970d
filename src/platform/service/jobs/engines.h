// Engines holds the engines of a service, by the computes that job files name. Plain values;
// thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "platform/engine/engine.h"

namespace tutti::service {

// The engine of each compute. "local" is always there; tutti's own scheduler places its jobs.
// All others schedule for themselves: a job is handed over when it comes in, stays Queued while it
// waits there, and is placed when the engine says on which nodes.
struct Engines {
  Engines(engine::Engine* local) : local(local) {}  // NOLINT: most services have nothing else
  engine::Engine* local;
  std::map<std::string, engine::Engine*, std::less<>> clusters;

  // Returns the compute's engine; nullptr if there is no such compute (any more).
  engine::Engine* Of(absl::string_view compute) const;
  // Returns why nothing can be done for the jobs of that compute, nor heard of them; "" if it is
  // there. Quick.
  std::string WhyOutOfReach(const std::string& compute) const;
};

}  // namespace tutti::service
