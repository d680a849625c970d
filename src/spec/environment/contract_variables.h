// Which variables tutti sets in a job's processes over all that the job says: the environment
// contract (docs/formats/environment.md), as far as the job tells before it has nodes. The values
// are made by platform/launch/environment/process_environment.cc, whose test holds this table to
// it. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns whether the processes of a job are told their ranks: many scripts take themselves for one
// of several where they are, and wait for a back end that the node may not have. The one process
// of a job that names no distribution is not.
bool HasRanks(const Distribution& distribution, int world_size);

// Returns what tutti sets the variable to, as "a free port of the first node"; nothing if the
// job's own value counts. Of PMI's, which are set where a node finds MPICH, nothing is said.
std::optional<absl::string_view> SetByTutti(const JobSpec& job, absl::string_view name);

// Returns what stands for a name of an input, an output or a secret in the names of variables: job
// files allow more than shells do.
std::string AsVariableName(absl::string_view name);

}  // namespace tutti::spec
