// Reads the tables that a job's inputs of mode eval_mount and eval_download are, before it queues.
// Thread-safe.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/faults.h"
#include "platform/service/admission/remote_paths.h"
#include "platform/service/secrets/secrets.h"
#include "spec/site/site.h"
#include "spec/types/job.h"

namespace tutti::service {

// Puts inputs for what the tables' paths name into the job, and into those below it, as
// spec::Input::table says: they are checked, kept and fetched as others are. Of a table in a store
// the file MLTable is fetched, 256 KiB at most, until `deadline`; blocks. Adds a fault, with the
// line of the input, for each table that cannot be read, or names what cannot be had; one whose
// secret is missing is left to CheckSecrets.
void ReadTables(spec::JobSpec& job, const spec::Site& site, const Secrets& secrets,
                RemotePaths& paths, base::Deadline deadline, base::Faults& faults);

}  // namespace tutti::service
