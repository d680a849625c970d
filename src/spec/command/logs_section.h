// Reads the key resources.properties.tutti.logs: the folder of a store to which the service brings
// a job's logs. Inside the room spec only.
#pragma once

#include "spec/data/datastore.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Sets spec.logs_place and its location. Unlike an output's path, which Azure ML's own files have
// too, one that leads nowhere is an error.
void ReadLogs(const YamlNode::Entry& entry, const Datastores& datastores, JobSpec& spec,
              Diagnostics& diagnostics);

}  // namespace tutti::spec
