#include "base/deadline.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/summary.h"
#include "platform/client/jobs/wait.h"

namespace tutti::client {

absl::StatusOr<ExitCode> JobWait(Context& context, const JobWaitOptions& options) {
  const WaitOptions wait = {.deadline = base::Deadline::After(options.timeout)};
  TUTTI_ASSIGN_OR_RETURN(const std::string id,
                         ResolveOnceThere(context.connect, options.job, wait, context.err));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, WaitForEnd(context.connect, id, wait));
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
  } else {
    context.out << Summary(job, std::nullopt, {}).front() << "\n";
    for (const std::string& note : NotesOf(job, Extent::kBrief)) {
      context.out << "Note: " << note << "\n";
    }
  }
  return ExitCodeOfJobState(job.state);
}

}  // namespace tutti::client
