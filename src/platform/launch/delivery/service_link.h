// The launcher's way to the service. A call is repeated until the service has answered it: over an
// outage, with the address and token read anew each time, since a service that comes back may have
// another port. Used by one thread; Abandon may come from any.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/http/client.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Why a launcher ends without having delivered everything.
inline constexpr char kNobodyWaits[] =
    "the service does not know this allocation, or its folder and this one's have been removed";

class ServiceLink {
 public:
  explicit ServiceLink(const spec::LaunchPlan& plan);

  // "/internal/v1/allocations/A/nodes/NODE" + `rest`.
  std::string Target(int node, absl::string_view rest) const;

  // The first 2xx answer. Aborted: the service does not know the allocation (410), or is away and
  // nobody waits. Other 4xx are returned as what they stand for; 401, 408, 429 and 5xx are
  // repeated. 507 is ResourceExhausted and returned. Cancelled after Abandon; DeadlineExceeded.
  absl::StatusOr<http::ClientResponse> Call(const http::ClientRequest& request,
                                            base::Deadline deadline);
  // The allocation's folder and the service's own have been removed, so it will not come back.
  bool NobodyWaits() const;
  // One attempt: Unavailable during an outage.
  absl::StatusOr<http::ClientResponse> TryCall(const http::ClientRequest& request);

  // Logs a failure that will be tried again, unless it is the one that was logged last.
  void SayOnce(const absl::Status& status);
  // Waits before the next attempt, longer each time since the last success; Abandon ends it.
  void PauseAfterFailure();

  // Waits that long, or until Abandon.
  void Pause(absl::Duration duration);

  // Ends the call in progress and fails all later ones with Cancelled.
  void Abandon();

 private:
  absl::Status Connect();
  // Its file says something else than what the last connection was made by: who refuses may be
  // another one, or want to be spoken to by TLS.
  bool HasMoved() const;

  const std::filesystem::path directory_;
  const std::filesystem::path service_file_;
  const std::string prefix_;
  absl::Duration pause_;
  std::string known_;  // the file's content at the last Connect
  std::string said_;   // the error that is in the log already

  absl::Mutex mutex_;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  // Shared, so that Abandon can cancel it while a call runs on it.
  std::shared_ptr<http::Client> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::launch
