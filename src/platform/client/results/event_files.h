// Fetches the event files of a job's TensorBoard: "events.out.tfevents.…" anywhere below its
// outputs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

struct EventFiles {
  size_t files = 0;        // that the job has now
  bool has_ended = false;  // no more come
  std::string note;        // for the job's user, as AskForResultsSoFar has it
};

// Brings the job's event files below `folder`, as they are now: of a job that runs its nodes are
// asked for them, for so long. One that is here already becomes longer in place, since TensorBoard
// keeps it open. Files that have not grown are not brought again.
absl::StatusOr<EventFiles> BringEventFiles(ServiceClient& service, const std::string& job,
                                           const std::filesystem::path& folder,
                                           absl::Duration wait);

}  // namespace tutti::client
