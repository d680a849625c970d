#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/stacks_text.h"

namespace tutti::client {

absl::StatusOr<ExitCode> JobStacks(Context& context, const JobStacksOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(
      const std::string stacks,
      service.Stacks(id, options.only_rank, options.native, absl::Seconds(options.wait)));
  TUTTI_ASSIGN_OR_RETURN(const StacksText text, TextOfStacks(stacks, context.out_screen.colour));
  if (options.format == Format::kTable) {
    context.out << text.lines;
  } else {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, stacks, options.format));
  }
  return text.has_any ? ExitCode::kOk : ExitCode::kSystemError;
}

}  // namespace tutti::client
