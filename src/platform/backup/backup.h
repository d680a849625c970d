// Saves a service's folder as one file, while the service runs (docs/backup.md). What had been
// accepted before it began is in it. Threads: none; another process's service goes on meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tutti::backup {

struct BackupOptions {
  std::filesystem::path home;
  std::filesystem::path file;    // absolute; it is not there yet
  bool with_results = false;     // with logs and results of all jobs
  bool with_secret_key = false;  // with what opens the service's secrets
  std::string version;
  absl::Time now;
  std::function<void()> on_copied = {};  // for tests: called once the database has been copied
};

struct BackupReport {
  int jobs = 0;        // that have no parent
  uint64_t bytes = 0;  // of the file
  int secrets = 0;     // that are in it, encrypted
  // The code of jobs that have not ended which was not there to be saved: "sha256:…".
  std::vector<std::string> missing_code;
};

// Makes a backup. The file is there once it is whole and on the disk, mode 0600; whatever ends the
// process before, it is not. NotFound if `home` has no service's state, AlreadyExists if the file
// is there, ResourceExhausted if the disk that it is to lie on is full: with the folder, what was
// free there and what the backup takes at most.
absl::StatusOr<BackupReport> MakeBackup(const BackupOptions& options);

}  // namespace tutti::backup
