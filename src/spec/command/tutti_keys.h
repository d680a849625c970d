// Reads resources.properties.tutti, whose keys are tutti's own: what a job asks of each node, its
// secrets and where its logs go. A table in tutti_keys.cc has a row for each key. Inside the room
// spec only.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "spec/site/site.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns the folder of a store, or of the machine, to which a job's logs are to be brought. Unlike
// an output's path, which Azure ML's own files have too, one that leads nowhere is InvalidArgument.
absl::StatusOr<DataPlace> LogsPlace(const std::string& address, const Site& site);

// Removes what the keys have set: a step's own resources are in place of its component's.
void ForgetTuttiKeys(JobSpec& spec);

// Call it after the job's environment_variables were read, which may not have the name of a secret
// too.
void ReadTuttiKeys(const YamlNode::Entry& tutti, const Site& site, JobSpec& spec,
                   Diagnostics& diagnostics);

// Call it after the whole job was read: what it asks to have mounted and cannot be is an error, of
// its steps too.
void CheckMounts(const JobSpec& spec, Diagnostics& diagnostics);

// Call it after all of a job's resources were read: what its slurm settings say of the same is an
// error.
void CheckNodeShare(const JobSpec& spec, Diagnostics& diagnostics);

}  // namespace tutti::spec
