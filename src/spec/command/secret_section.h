// Reads the key resources.properties.tutti.secrets: which secrets of the service a job's processes
// are given, and how. Inside the room spec only.
#pragma once

#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Reads the secrets: NAME: SECRET is a variable; NAME: {secret: SECRET, file: true} a file, whose
// path is the variable. Call it after the job's environment_variables were read, which may not have
// a NAME too.
void ReadSecrets(const YamlNode::Entry& entry, JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
