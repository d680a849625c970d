// Reads how much a job asks for: resources, distribution, limits, queue_settings. Inside the room
// spec only.
#pragma once

#include "spec/diagnostics.h"
#include "spec/job.h"
#include "spec/mapping_reader.h"

namespace tutti::spec {

void ReadScale(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics);

// Parts of it, for what has no others.
void ReadResources(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics);
void ReadQueueSettings(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
