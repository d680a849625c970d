// Returns what a job asks of Slurm over its compute's settings. Pure.
#pragma once

#include "spec/types/job.h"

namespace tutti::spec {

// Returns the job's own settings (resources.properties.slurm), with what its share of a node comes
// to.
SlurmSettings AskedOfSlurm(const JobSpec& spec);

}  // namespace tutti::spec
