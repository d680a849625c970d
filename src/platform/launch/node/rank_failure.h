// Makes the error that says which rank failed and how; the rank may be another node's: mpirun and
// PMI tell the first node of all ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::launch {

// "rank 2 left MPI without MPI_Finalize" of `what` "left MPI without MPI_Finalize".
absl::Status RankFailure(absl::StatusCode code, int rank, absl::string_view what);

// `status` with "; MORE" after its message, and of the same rank.
absl::Status WithMore(const absl::Status& status, absl::string_view more);

// The fields `ok`, `reason` and, of a RankFailure, `rank` of the event "finished".
nlohmann::json EndOf(const absl::Status& status);

}  // namespace tutti::launch
