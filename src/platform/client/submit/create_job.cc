#include "platform/client/submit/create_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace {

// Returns whether the service was asked and did not answer.
bool IsLost(const absl::Status& status, bool asked) {
  return asked && (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
}

absl::Status MayBeThere(const absl::Status& error, absl::Duration waited,
                        absl::string_view what_may_be) {
  return base::Annotate(
      error, absl::StrCat("the service's answer was lost and it did not come back within ",
                          absl::FormatDuration(waited), "; ", what_may_be));
}

}  // namespace

absl::StatusOr<std::string> CreateJobOnce(ServiceClient& service, const Connect& connect,
                                          const std::string& body, std::ostream& remarks,
                                          const CreateOptions& options) {
  return CallOnce(
      service, connect,
      [&](ServiceClient& client, bool* asked) { return client.CreateJob(body, asked); },
      "the job may have been taken: tutti job list shows it", remarks, options);
}

absl::StatusOr<std::string> CallOnce(ServiceClient& service, const Connect& connect,
                                     const CallWithNonce& call, absl::string_view what_may_be,
                                     std::ostream& remarks, const CreateOptions& options) {
  bool asked = false;
  auto created = call(service, &asked);
  if (created.ok() || !IsLost(created.status(), asked)) return created;
  remarks << "the service's answer was lost; asking again" << std::endl;
  const base::Deadline give_up = base::Deadline::After(options.give_up_after);
  base::RetryPause pause(options.first_pause, options.longest_pause);
  while (!give_up.Expired()) {
    absl::SleepFor(std::min(pause.Next(), give_up.Remaining()));
    ServiceClient again(connect());
    created = call(again, nullptr);
    if (created.ok() || !MayRecover(created.status())) return created;
  }
  return MayBeThere(created.status(), options.give_up_after, what_may_be);
}

}  // namespace tutti::client
