// ServiceLink is the launcher's way to the service: one connection, on which calls of several
// threads take turns, the more urgent first. A call is repeated until the service has answered it:
// over an outage, with the address and token read anew each time, since a service that comes back
// may have another port. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/threads/retry_pause.h"
#include "http/client/client.h"
#include "platform/launch/delivery/patience.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Why a launcher ends without having delivered everything.
inline constexpr char kNobodyWaits[] =
    "the service does not know this allocation, or its folder and this one's have been removed";

// A call that waits for the connection goes before those of less urgency. A call of kWait lasts
// until the service has news, and one of kUsage may be lost: a more urgent one breaks it off by
// closing the connection, which is made anew.
enum class Urgency { kWait, kUsage, kOutput, kEvents };

class ServiceLink {
 public:
  explicit ServiceLink(const spec::LaunchPlan& plan);

  // Returns "/internal/v1/allocations/A" + `rest`.
  std::string Target(absl::string_view rest) const;
  // Returns "/internal/v1/allocations/A/nodes/NODE" + `rest`.
  std::string Target(int node, absl::string_view rest) const;

  // Returns the first 2xx answer. Aborted: the service does not know the allocation (410), or is
  // away and nobody waits. Other 4xx are returned as what they stand for; 401, 408, 429 and 5xx are
  // repeated. 507 is ResourceExhausted and returned. Cancelled after Abandon; DeadlineExceeded,
  // also of a call that was broken off.
  absl::StatusOr<http::ClientResponse> Call(const http::ClientRequest& request,
                                            base::Deadline deadline,
                                            Urgency urgency = Urgency::kOutput);
  // As Call, beyond the deadline as long as the service puts off what this link sends.
  absl::StatusOr<http::ClientResponse> CallWithin(const http::ClientRequest& request,
                                                  Patience patience);
  // Returns whether the allocation's folder and the service's own have been removed, so it will not
  // come back.
  bool NobodyWaits() const;
  // Makes one attempt: Unavailable during an outage.
  absl::StatusOr<http::ClientResponse> TryCall(const http::ClientRequest& request,
                                               Urgency urgency = Urgency::kOutput);
  // Returns when the service answered last, by base::SteadyNow.
  absl::Duration last_answer() const { return absl::Nanoseconds(last_answer_.load()); }
  // Returns when the service, and not a proxy before it, said last that it takes later what was
  // sent with that urgency (503, as of a full disk), by base::SteadyNow. What is asked of it, as
  // for a sign of life, does not count.
  absl::Duration put_off(Urgency urgency) const {
    return absl::Nanoseconds(put_off_[static_cast<size_t>(urgency)].load());
  }
  // Closes the connection, which the next call makes anew. Not during a call.
  void Disconnect();

  // Logs a failure that will be tried again, unless it is the one that was logged last.
  void SayOnce(const absl::Status& status);
  // Waits before the next attempt, longer each time since the last success, and by chance up to
  // half of it less, so that not all launchers come at once; Abandon ends it.
  void PauseAfterFailure();

  // Waits that long, or until Abandon.
  void Pause(absl::Duration duration);

  // Ends the call in progress and fails all later ones with Cancelled.
  void Abandon();

 private:
  // The connection is the caller's as long as it lives.
  class Turn {
   public:
    Turn(ServiceLink& link, Urgency urgency);
    ~Turn();

   private:
    ServiceLink& link_;
  };
  bool IsTurnOf(Urgency urgency) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Connects; called in a turn, as Judge is.
  absl::StatusOr<std::shared_ptr<http::Client>> Connect();
  absl::StatusOr<http::ClientResponse> Judge(absl::StatusOr<http::ClientResponse> response);
  void NoteIfPutOff(const http::ClientRequest& request, const http::ClientResponse& response,
                    Urgency urgency);
  // Returns whether the service's file says something else than when the last connection was made:
  // who refuses may be another one, or want to be spoken to by TLS.
  bool HasMoved() const;

  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

  const std::filesystem::path directory_;
  const std::filesystem::path service_file_;
  const std::string prefix_, token_;
  std::atomic<int64_t> last_answer_ = absl::ToInt64Nanoseconds(base::SteadyNow());
  std::array<std::atomic<int64_t>, 4> put_off_ = {kNever, kNever, kNever,
                                                  kNever};  // by their urgency
  std::string known_;  // the file's content at the last Connect; of who has the turn

  absl::Mutex mutex_;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Urgency> turn_ ABSL_GUARDED_BY(mutex_);
  std::array<int, 4> waiting_ ABSL_GUARDED_BY(mutex_) = {};  // for a turn, by their urgency
  bool broken_off_ ABSL_GUARDED_BY(mutex_) = false;          // the turn, of kWait or kUsage
  base::RetryPause pause_ ABSL_GUARDED_BY(mutex_);
  std::string said_ ABSL_GUARDED_BY(mutex_);  // the error that is in the log already
  // Shared, so that it can be cancelled while a call runs on it.
  std::shared_ptr<http::Client> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::launch
