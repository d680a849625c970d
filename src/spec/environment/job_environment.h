// Reads the environment of a job: a name, a file, or written out with image, conda_file and build
// (Azure ML's environment schema). Inside the room spec only.
#pragma once

#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Reads an environment. Faults, also of the files that it names, go to `diagnostics`.
Environment ReadEnvironment(const YamlNode::Entry& entry, const ReadContext& context,
                            Diagnostics& diagnostics);

// Reads the same of a whole file.
Environment ReadWholeEnvironment(const YamlNode& root, const ReadContext& context,
                                 Diagnostics& diagnostics);

}  // namespace tutti::spec
