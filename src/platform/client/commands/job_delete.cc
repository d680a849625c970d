#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"

namespace tutti::client {

absl::StatusOr<ExitCode> JobDelete(Context& context, const std::vector<std::string>& jobs) {
  ServiceClient service(context.connect());
  // A beginning of a name is enough to look, not to destroy.
  for (const std::string& job : jobs) {
    TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, job));
    if (id != job) {
      return absl::InvalidArgumentError("to delete " + id + ", write its name in full");
    }
    TUTTI_RETURN_IF_ERROR(service.Delete(id));
    context.out << id << " deleted\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
