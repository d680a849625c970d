#include "platform/client/jobs/wait.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/choose_job.h"

namespace tutti::client {

absl::StatusOr<std::string> WaitForEnd(const Connect& connect, const std::string& id,
                                       const WaitOptions& options) {
  base::RetryPause pause(options.first_pause, options.longest_pause);
  base::Deadline give_up = base::Deadline::After(options.give_up_after);
  std::unique_ptr<ServiceClient> service;  // as long as it answers
  while (true) {
    if (service == nullptr) service = std::make_unique<ServiceClient>(connect());
    auto text = service->Job(id);
    if (text.ok()) {
      TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(*text));
      if (job.ended_already()) return text;
      give_up = base::Deadline::After(options.give_up_after);
    } else if (!MayRecover(text.status())) {
      return text.status();
    } else if (give_up.Expired()) {
      return DidNotComeBack(text.status(), options.give_up_after);
    } else {
      service.reset();
    }
    if (options.deadline.Expired()) {
      return text.ok() ? absl::DeadlineExceededError(absl::StrCat(id, " has not ended yet"))
                       : text.status();
    }
    absl::SleepFor(std::min(pause.Next(), options.deadline.Remaining()));
  }
}

absl::StatusOr<std::string> ResolveOnceThere(const Connect& connect, const std::string& name,
                                             const WaitOptions& options, std::ostream& remarks) {
  base::RetryPause pause(options.first_pause, options.longest_pause);
  const base::Deadline give_up = base::Deadline::After(options.give_up_after);
  for (bool told = false;; told = true) {
    ServiceClient service(connect());
    auto id = ResolveJob(service, name);
    if (id.ok() || !MayRecover(id.status()) || options.deadline.Expired()) return id;
    if (!told && WasNeverThere(id.status())) return id;
    if (give_up.Expired()) return DidNotComeBack(id.status(), options.give_up_after);
    if (!told) {
      remarks << "the service is away (" << id.status().message() << "): waiting for it"
              << std::endl;
    }
    absl::SleepFor(std::min(pause.Next(), options.deadline.Remaining()));
  }
}

}  // namespace tutti::client
