#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/wait.h"

namespace tutti::client {

absl::StatusOr<ExitCode> JobCancel(Context& context, const JobCancelOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(std::string text, service.Cancel(id));
  if (options.wait) {
    TUTTI_ASSIGN_OR_RETURN(text, WaitForEnd(context.connect, id));
  }
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
  context.out << id << ": "
              << (job.state == "Canceled" ? "cancelled"
                  : job.ended_already()   ? "has ended already, " + job.state
                                          : "is being cancelled (" + job.reason + ")")
              << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
