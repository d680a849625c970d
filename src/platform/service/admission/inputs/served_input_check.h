// Checks, before a job queues, that its nodes reach the file servers that it reads from.
// Thread-safe.
#pragma once

#include <filesystem>

#include "base/faults.h"
#include "spec/types/job.h"

namespace tutti::service {

// Adds a fault, with its place in the job file, for each input of a cluster's job, also of the jobs
// below it, whose file server in `home`'s list names each node itself (spec::NamesEachNode):
// whoever has the port there would be believed.
void CheckServedInputs(const spec::JobSpec& job, const std::filesystem::path& home,
                       base::Faults& faults);

}  // namespace tutti::service
