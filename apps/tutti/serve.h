// Serve is the command `tutti serve`: it puts store, engines, service and HTTP interface together
// and runs them until it is stopped.
#pragma once

#include "absl/status/status.h"
#include "platform/client/command_line.h"

namespace tutti {

// Serves until SIGTERM or SIGINT; jobs that run go on. FailedPrecondition when another service has
// this home, AlreadyExists when the port is taken, with the remedy.
absl::Status Serve(const client::ServeOptions& options);

}  // namespace tutti
