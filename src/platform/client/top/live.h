// Shows nodes, jobs and ranks on a terminal until the user has had enough.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "platform/client/connection/connection.h"
#include "platform/client/text/exit_code.h"
#include "platform/client/top/live_view.h"
#include "platform/client/top/terminal.h"

namespace tutti::client {

struct LiveOptions {
  absl::Duration interval = absl::Seconds(2);
  bool colour = false;
};

// `first`: what is shown at once, of all or of the job that is open. kOk once the user leaves, or
// the keyboard is gone; kInterrupted on a signal. The terminal is as it was in any case.
absl::StatusOr<ExitCode> ShowLive(const Connect& connect, LiveView first,
                                  const LiveOptions& options, Terminal& terminal);

}  // namespace tutti::client
