// Reads what `resources` says of a job's containers: shm_size and docker_args. Inside the room spec
// only.
#pragma once

#include "spec/site/site.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Fills spec.container_options with those options that do not change how a container is named,
// started, watched and ended, each as "--name=value"; the others are named in a warning. All of
// them are, where the job's environment, which must have been read, is no image. What reaches out
// of a container and `site` does not allow is an error.
void ReadContainerOptions(MappingReader& resources, const Site& site, JobSpec& spec,
                          Diagnostics& diagnostics);

}  // namespace tutti::spec
