// The key resources.properties.tutti: a part of each node, secrets, and where the logs go. Inside
// the room spec only.
#pragma once

#include "spec/data/datastore.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

void ReadNodePart(const YamlNode::Entry& entry, const Datastores& datastores, JobSpec& spec,
                  Diagnostics& diagnostics);

// Call after all of a job's resources are read: what its slurm settings say of the same is an
// error.
void CheckNodePart(const JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
