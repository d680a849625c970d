// Makes a service's folder from a backup (docs/backup.md).
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/backup/head.h"
#include "platform/backup/unended_jobs.h"

namespace tutti::backup {

struct RestoreOptions {
  std::filesystem::path file;
  std::filesystem::path home;  // absolute; it is not there, or empty
  bool keep_queue = false;     // see EndUnended
  absl::Time now;
};

struct RestoreReport {
  Head head;
  int jobs = 0;  // that have no parent
  UnendedJobs unended;
};

// Restores a backup. `home` is there once all of it is whole and on the disk; whatever ends the
// process before, it is as it was. FailedPrecondition if it is not empty; for others see
// UnpackArchive.
absl::StatusOr<RestoreReport> Restore(const RestoreOptions& options);

}  // namespace tutti::backup
