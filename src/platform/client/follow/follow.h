// Follows a job on a screen until it ends or the user has had enough.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/views.h"
#include "platform/client/follow/follow_reader.h"
#include "platform/client/follow/interrupts.h"
#include "platform/client/follow/job_display.h"

namespace tutti::client {

struct FollowOptions {
  FollowReaderOptions reader = {.reports = false};  // the display shows none but what is left
  bool cancel_on_interrupt = false;                 // Ctrl-C cancels without a question
  bool offer_cancel = true;                         // false: Ctrl-C detaches without a question
};

struct FollowEnd {
  enum class Kind { kEnded, kDetached, kInterrupted } kind = Kind::kEnded;
  std::optional<JobView> job;  // how it ended
  std::string cursor;          // of the last line shown
};

// Shows the lines of `job` on `display`. A job that the user cancels is followed on to its end.
// kDetached: the user asked for it; kInterrupted: a signal did, without a question.
absl::StatusOr<FollowEnd> FollowJob(const Connect& connect, const std::string& job,
                                    const FollowOptions& options, JobDisplay& display,
                                    Interrupts& interrupts);

}  // namespace tutti::client
