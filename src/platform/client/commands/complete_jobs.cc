#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

absl::StatusOr<ExitCode> CompleteJobs(Context& context) {
  ServiceClient service(context.connect());
  const auto text = service.Jobs("", 50);
  const auto jobs = text.ok() ? Parse<JobListView>(*text) : text.status();
  if (!jobs.ok()) return ExitCode::kOk;  // a shell's prompt is no place for errors
  for (const JobView& job : jobs->jobs) context.out << job.id << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
