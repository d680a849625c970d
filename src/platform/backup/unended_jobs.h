// Ends, in a restored store, the jobs that had not ended when the backup was made. The service that
// was saved may have gone on with them, and its launchers may still run: none of them is ever begun
// here again.
#pragma once

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/store/store.h"

namespace tutti::backup {

struct UnendedJobs {
  int failed = 0;    // had begun: they are lost
  int canceled = 0;  // waited
  int kept = 0;      // wait still
};

// Ends the jobs that had not ended when the backup was made, at `made`. With `keep_queue`, which
// says that the other service has begun nothing since and does not run any more, jobs that waited
// for this machine's nodes wait on. Those in a cluster's queue do not: it may have begun them all
// the same.
absl::StatusOr<UnendedJobs> EndUnended(store::Store& store, absl::Time made, absl::Time now,
                                       bool keep_queue);

}  // namespace tutti::backup
