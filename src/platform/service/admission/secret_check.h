// Whether a job can be given the secrets that it names, and those below it theirs.
#pragma once

#include "absl/status/status.h"
#include "base/faults.h"
#include "platform/service/jobs/engines.h"
#include "platform/service/secrets/secrets.h"
#include "spec/types/job.h"

namespace tutti::service {

// Adds a fault for each that is not there, that cannot be read, that no variable can hold, or that
// cannot reach the nodes of the job's compute; each with what to do. Unavailable if they cannot be
// looked at now. Asks the store, of jobs that name some. Thread-safe.
absl::Status CheckSecrets(const spec::JobSpec& job, const Secrets& secrets, const Engines& engines,
                          base::Faults& faults);
// Returns the signatures that addresses of its inputs name, and of those of its steps, but those
// that are not there or cannot be read.
SecretValues KnownSignatures(const spec::JobSpec& job, const Secrets& secrets);

}  // namespace tutti::service
