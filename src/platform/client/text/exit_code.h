// ExitCode is what the program `tutti` tells the script that started it
// (docs/formats/exit-codes.md).
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

enum class ExitCode : int {
  kOk = 0,
  kJobFailed = 1,     // also: a check of `tutti doctor` failed
  kUsage = 2,         // wrong options, wrong job file, missing input
  kUnreachable = 3,   // no service, or it went away and did not come back
  kNotFound = 4,      // no such job or file
  kCanceled = 5,      // the job was cancelled
  kDeadline = 6,      // --timeout passed
  kRefused = 7,       // not possible in the present state: name taken, job still runs
  kDenied = 8,        // token missing or wrong
  kSystemError = 9,   // this machine or the service could not: disk full, a file that may not be
                      // read, internal error
  kInterrupted = 130  // Ctrl-C ended the command; the job goes on
};

// Returns the code for a call that ended with `status`.
ExitCode ExitCodeOf(const absl::Status& status);

// Returns the status of what reads a user's files so that one that is missing is a fault of what
// the user wrote (kUsage), not an unknown job.
absl::Status AsInput(const absl::Status& status);

// Returns the code for a job that ended in `state`: Completed, Failed or Canceled.
ExitCode ExitCodeOfJobState(absl::string_view state);

// Returns the table that `--help` prints.
absl::string_view ExitCodeHelp();

}  // namespace tutti::client
