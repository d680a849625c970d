// Checks, before a job queues, that its inputs in stores can be had and its outputs be put there.
// Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/faults.h"
#include "platform/service/secrets/secrets.h"
#include "spec/types/job.h"

namespace tutti::service {

// Asks the stores of all such inputs and outputs, also of the jobs below it, as store_inquiry.h
// does and until `deadline` at most; blocks. Adds a fault for each that cannot be had or be written
// to, with its place in the job file. A warning is added for each of a store that has not answered
// by then, and for those of clusters' jobs whose store cannot be reached from here. Those whose
// secret is missing are left to CheckSecrets.
void CheckPlaces(const spec::JobSpec& job, const Secrets& secrets, base::Deadline deadline,
                 base::Faults& faults, std::vector<std::string>& warnings);

}  // namespace tutti::service
