#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/usage_text.h"

namespace tutti::client {

absl::StatusOr<ExitCode> JobMetrics(Context& context, const JobMetricsOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string usage,
                         service.Usage(id, options.only_rank, options.points));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, usage, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, UsageText(usage, context.out_screen));
  context.out << text;
  return ExitCode::kOk;
}

}  // namespace tutti::client
