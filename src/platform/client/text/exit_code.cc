#include "platform/client/text/exit_code.h"

namespace tutti::client {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kDeadline;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kRefused;
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kDenied;
    default:
      return ExitCode::kSystemError;
  }
}

absl::Status AsInput(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::InvalidArgumentError(status.message()) : status;
}

ExitCode ExitCodeOfJobState(absl::string_view state) {
  if (state == "Completed") return ExitCode::kOk;
  if (state == "Canceled") return ExitCode::kCanceled;
  return ExitCode::kJobFailed;
}

absl::string_view ExitCodeHelp() {
  return "Exit codes:\n"
         "  0  ok                               5  the job was cancelled\n"
         "  1  the job (or a check) failed      6  --timeout passed\n"
         "  2  wrong usage or input             7  refused in the present state\n"
         "  3  service not reachable            8  token missing or wrong\n"
         "  4  no such job or file              9  other error, e.g. disk full\n"
         "  130  ended by Ctrl-C; the job goes on\n";
}

}  // namespace tutti::client
