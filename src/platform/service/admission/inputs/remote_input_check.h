// Checks, before a job queues, that its inputs behind http or https can be had. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "platform/service/secrets/secret_info.h"
#include "spec/types/job.h"

namespace tutti::service {

// Asks the servers of all such inputs, also of the jobs below it, several at a time and until
// `deadline` at most. InvalidArgument has a line for each that cannot be had, with its place in the
// job file. A warning is added for each of a server that has not answered by then, and for those of
// clusters' jobs whose server cannot be reached: their nodes may reach it.
// `signatures`: of the addresses that name theirs; one that has none of them is not asked.
absl::Status CheckRemoteInputs(const spec::JobSpec& job, const SecretValues& signatures,
                               base::Deadline deadline, std::vector<std::string>& warnings);

}  // namespace tutti::service
