#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/job_name.h"
#include "platform/client/summary.h"
#include "platform/client/wait.h"

namespace tutti::client {

absl::StatusOr<std::string> WaitForEnd(Service& service, const std::string& id,
                                       base::Deadline deadline) {
  absl::Duration pause = absl::Milliseconds(20);
  while (true) {
    auto text = service.Job(id);
    // A service that is being restarted comes back; one that is not there at all is told at the
    // start, by ResolveJob.
    if (!text.ok() && !absl::IsUnavailable(text.status())) return text.status();
    if (text.ok()) {
      TUTTI_ASSIGN_OR_RETURN(const JobView job, ParseJob(*text));
      if (job.ended_already()) return text;
    }
    if (deadline.Expired()) {
      return text.ok() ? absl::DeadlineExceededError(absl::StrCat(id, " has not ended yet"))
                       : text.status();
    }
    absl::SleepFor(std::min(pause, deadline.Remaining()));
    pause = std::min(pause * 2, absl::Seconds(1));
  }
}

absl::StatusOr<ExitCode> JobWait(Context& context, const JobWaitOptions& options) {
  Service service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         WaitForEnd(service, id, base::Deadline::After(options.timeout)));
  TUTTI_ASSIGN_OR_RETURN(const JobView job, ParseJob(text));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
  } else {
    const std::vector<std::string> lines = Summary(job, std::nullopt, {});
    context.out << lines.front() << "\n";
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, "Note: ")) context.out << line << "\n";
    }
  }
  return ExitCodeOfJobState(job.state);
}

}  // namespace tutti::client
