// Reads what `resources` says of a job's containers: shm_size and docker_args. Inside the room spec
// only.
#pragma once

#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Fills spec.container_options with those options that are safe to pass on, each as
// "--name=value"; the others are named in a warning. All of them are, where the job's environment,
// which must have been read, is no image.
void ReadContainerOptions(MappingReader& resources, JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
