// Finds where a job seems to write to what its processes see read-only: an input of mode ro_mount,
// or a volume of its container that is mounted so. A pure function.
#pragma once

#include <string>
#include <vector>

#include "spec/types/job.h"

namespace tutti::spec {

struct ReadOnlyWrite {
  SourceLocation location;  // of the variable; line 0: of the command
  std::string message;
};

// Looks at the literal paths of the command and of the environment variables. That a program writes
// to a path is taken from the name of its option or variable (--output-dir, SAVE_PATH, log_dir=),
// from a redirection, or from `tee`: a warning for each path would be one for all that is read.
// Expects a job that has been read, whose command does not have its inputs' paths yet.
std::vector<ReadOnlyWrite> WritesToReadOnly(const JobSpec& job);

}  // namespace tutti::spec
