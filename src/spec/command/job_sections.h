// Reads the sections of a job that say how much it asks for: resources, distribution, limits,
// queue_settings, retry_settings. Inside the room spec only.
#pragma once

#include "spec/site/site.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Reads the sections. What `site` does not allow is an error.
void ReadSections(MappingReader& job, const Site& site, JobSpec& spec, Diagnostics& diagnostics);

// Read parts of it, for what has no others.
void ReadResources(MappingReader& job, const Site& site, JobSpec& spec, Diagnostics& diagnostics);
void ReadQueueSettings(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
