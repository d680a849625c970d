// CheckResponse checks what rank 0 decided before it is run: a rank that errs or lies may end the
// negotiation, but not make this one read or write memory that is not there. A pure function.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/negotiation/execution/runner.h"

namespace tutti::comm {

// Checks a response: `tasks[i]` belongs to units[i]. Null is right only where this rank, one of
// `ranks`, has joined, and for what goes on without it. Internal: what rank 0 never says.
absl::Status CheckResponse(const Response& response,
                           const std::vector<std::unique_ptr<Task>>& tasks, bool joined,
                           const std::vector<int>& ranks, int rank);

}  // namespace tutti::comm
