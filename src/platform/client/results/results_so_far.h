// Has a job that runs show what results it has now.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"

namespace tutti::client {

// Has the nodes of a job that runs send the results that they have now, of those whose names have
// `name` in them: they are the job's files then. Returns what its user is to know, as "job j still
// runs: this is what it had at 12:03:11; node n2: its launcher did not answer in time"; "" of a job
// that does not run, or that has no processes of its own.
std::string AskForResultsSoFar(ServiceClient& service, const JobView& job, const std::string& name,
                               absl::Duration wait);

}  // namespace tutti::client
