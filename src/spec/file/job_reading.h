// Defines the result of reading a job file, the same for every reader: the job, its warnings and
// its faults. Plain values.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct ReadResult {
  JobSpec spec;
  // Keys that are accepted and have no effect here: `job.yml:14: "shm_size" has no effect: …`.
  std::vector<std::string> warnings;
};

// A file as far as it could be read.
struct Reading {
  // Where `faults` is not OK: the part that is certain, for checks that find more at the same time.
  // Refused values, and those that depend on them, are such that checks say nothing of them; it is
  // no job then.
  ReadResult job;
  absl::Status faults;  // InvalidArgument holds all errors
  // False where the file as a whole cannot be read (no YAML, no mapping, a file of another kind):
  // `faults` then has the one reason, and no check is to add anything.
  bool is_job = true;
};

}  // namespace tutti::spec
