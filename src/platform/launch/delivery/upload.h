// Sends the job's results (results.h) from this node to the service.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "platform/launch/delivery/patience.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/service_link.h"

namespace tutti::launch {

// Goes on after a file that cannot be sent and returns the first such error with the file's name.
// Aborted when the service does not know the allocation.
absl::Status UploadResults(const std::vector<Result>& files, int node, ServiceLink* link,
                           Patience patience);

}  // namespace tutti::launch
