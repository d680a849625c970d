// Reads a script with #SBATCH lines as a job, as `sbatch SCRIPT` would take it
// (docs/slurm/sbatch.md): the script runs once, on the first node of what its lines ask for. Like
// every reader of job files it reports all errors at once with file and line. A pure function,
// thread-safe.
#pragma once

#include <filesystem>

#include "absl/strings/string_view.h"
#include "spec/file/job_reading.h"
#include "spec/site/site.h"

namespace tutti::spec {

// Returns whether the text of a job file is such a script: it begins with "#!".
bool IsBatchScript(absl::string_view text);

// The compute is what --clusters names, else the site's one compute of type slurm, else this
// machine's virtual nodes, where the lines that speak of Slurm alone have no effect; none that is
// certain if a line was refused. The arguments are those of ReadJobFile.
Reading ReadBatchScript(absl::string_view text, absl::string_view file_name,
                        const std::filesystem::path& base_directory, const Site& site);

}  // namespace tutti::spec
