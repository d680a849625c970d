// Checks, before a job queues, that its inputs in stores can be had, and its outputs and logs be
// put there.
// Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/faults.h"
#include "platform/service/admission/remote_paths.h"
#include "platform/service/secrets/secrets.h"
#include "spec/types/job.h"

namespace tutti::service {

// Asks the stores of all such inputs and outputs, also of the jobs below it, as store_inquiry.h
// does and until `deadline` at most; blocks. Adds a fault for each that cannot be had or be written
// to, with its place in the job file. A warning is added for each of a store that has not answered
// by then, and for those of clusters' jobs whose store cannot be reached from here. Those whose
// secret is missing are left to CheckSecrets.
//
// Then lists what this machine is to fetch of them, for three seconds at most, and adds a fault for
// each job whose data the disk of `directory`'s cache could not have (disk_space.h). What a list
// does not tell by then counts as nothing.
void CheckPlaces(const spec::JobSpec& job, const Secrets& secrets, RemotePaths& paths,
                 const std::filesystem::path& directory, base::Deadline deadline,
                 base::Faults& faults, std::vector<std::string>& warnings);

}  // namespace tutti::service
