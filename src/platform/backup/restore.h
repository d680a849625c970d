// Makes a service's folder from a backup (docs/backup.md).
#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/backup/head.h"

namespace tutti::backup {

// How many jobs had not ended when the backup was made, by what became of them in the restored
// store.
struct UnendedJobs {
  int failed = 0;    // had begun: they are lost
  int canceled = 0;  // waited
  int kept = 0;      // wait still
};

struct RestoreOptions {
  std::filesystem::path file;
  std::filesystem::path home;  // absolute; without `replace` it is not there, or empty
  // The other service has begun nothing since and does not run any more: jobs that waited for this
  // machine's nodes wait on.
  bool keep_queue = false;
  // `home` may be the folder of a service that does not run: it is set aside, whole, as
  // HOME.aside-DATE-TIME.
  bool replace = false;
  absl::Time now;
  std::function<void()> on_step = {};  // for tests: called before each change outside of the work
};

struct RestoreReport {
  Head head;
  int jobs = 0;  // that have no parent
  UnendedJobs unended;
  std::filesystem::path aside;  // the folder that was replaced; empty: there was none
};

// Restores a backup. `home` is there once all of it is whole and on the disk; whatever ends the
// process before, it is as it was. FailedPrecondition if it is not empty, or, to be replaced, is
// no service's or one's that runs, or has mounts; for others see UnpackArchive.
absl::StatusOr<RestoreReport> Restore(const RestoreOptions& options);

}  // namespace tutti::backup
