// Fetches a job with all of its children and events. The service tells the first trials of a sweep
// and the newest events with the job, and the others by page.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

// Returns the service's answer for that job, with the trials of its sweeps and the events that the
// pages after it have.
absl::StatusOr<std::string> WholeJob(ServiceClient& service, const std::string& id);

}  // namespace tutti::client
