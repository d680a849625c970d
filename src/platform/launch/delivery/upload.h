// Sends the job's results (results.h) from this node to the service.
#pragma once

#include "absl/status/status.h"
#include "base/deadline.h"
#include "platform/launch/delivery/service_link.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Goes on after a file that cannot be sent and returns the first such error with the file's name.
// Aborted when the service does not know the allocation.
absl::Status UploadOutputs(const spec::LaunchPlan& plan, ServiceLink* link,
                           base::Deadline deadline);

}  // namespace tutti::launch
