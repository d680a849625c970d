// Makes the errors that carry more than words to the event "finished": which rank failed, which may
// be another node's (mpirun and PMI tell the first node of all ranks), or that the time limit ended
// the node's processes, or that the node is ill.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::launch {

// Returns "rank 2 left MPI without MPI_Finalize" of `what` "left MPI without MPI_Finalize".
absl::Status RankFailure(absl::StatusCode code, int rank, absl::string_view what);

// Returns "wall time limit of 60 s reached".
absl::Status TimeLimitReached(double seconds);

// Returns "it is ill: disk: …", of this node: it runs nothing of the job.
absl::Status NodeIsIll(absl::string_view illness);

// Returns "the disk that all nodes share is full: …": nothing of the job runs, and no node is at
// fault.
absl::Status SharedDiskIsFull(absl::string_view why);
// Returns SharedDiskIsFull where `status` says that of a place in `shared_folder`, which is
// LaunchPlan's; else `status` as it is.
absl::Status BlameSharedDisk(const absl::Status& status, const std::string& shared_folder);
// Returns `status` of a SharedDiskIsFull with that it was the job's own files that filled the disk,
// `bytes` or so.
absl::Status FilledByItsJob(const absl::Status& status, uint64_t bytes);

// Returns `status` with "; MORE" after its message; what else it carries is kept.
absl::Status WithMore(const absl::Status& status, absl::string_view more);

// Returns the fields of the event "finished": `ok` and `reason`, of a RankFailure also `rank`, and
// of any failure `timed_out`, whether it was TimeLimitReached; of NodeIsIll also `ill`, why; of
// SharedDiskIsFull also `shared_disk_full`, and of FilledByItsJob `filled_by_job`.
nlohmann::json EndOf(const absl::Status& status);

}  // namespace tutti::launch
