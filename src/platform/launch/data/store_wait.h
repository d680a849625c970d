// StoreWait waits for the store of an input or an output that is away (cut off, restarted, too
// busy), so that a fetch goes on where it was once the store is back, and says what the job waits
// for. Not thread-safe.
//
//   StoreWait wait("input \"data\"", parts, cancelled);
//   while (true) {
//     auto fetched = Fetch();  // calls wait.NoteAnswer() when something has come
//     if (!MayPass(fetched.status())) return fetched;
//     TUTTI_RETURN_IF_ERROR(wait.Await(fetched.status()));
//   }
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/threads/retry_pause.h"
#include "platform/launch/data/fetch_place.h"
#include "platform/launch/node/store_patience.h"

namespace tutti::launch {

// WaitParts is what a wait reports to and is measured with; what it refers to outlives the wait.
struct WaitParts {
  std::string job = {};  // its name, for the command that ends the wait
  // Takes the line that stands for the job's state while it waits; "" once it does not. It is
  // called when a wait begins, and at most every ten minutes when the failure has become another.
  std::function<void(const std::string& line)> held;
  // Takes what is for the job's log: a line when the wait begins, and one when the store answers
  // again.
  std::function<void(const std::string& line)> log;
  StorePatience patience = {};
  std::function<absl::Time()> now = absl::Now;               // of the day
  std::function<absl::Duration()> steady = base::SteadyNow;  // of a clock that is never set
};

class StoreWait {
 public:
  // `what` begins its lines: `input "data"`.
  StoreWait(std::string what, const WaitParts& parts, const std::atomic<bool>& cancelled);
  // The job waits no more, whatever came of it.
  ~StoreWait();

  // Says that the store has answered, or that bytes have come: the limit counts from the next
  // failure on.
  void NoteAnswer();

  // Waits until the store is to be asked again, longer each time, or as long as it asks for
  // (base/threads/retry_after.h). Returns `failure`, with how long it was waited for, once that has
  // been as long as the limit; Cancelled once that is set.
  absl::Status Await(const absl::Status& failure);

 private:
  void Tell(const absl::Status& failure);
  // Ends what is told.
  void Release();

  const std::string what_;
  const WaitParts& parts_;
  const std::atomic<bool>& cancelled_;
  base::RetryPause pause_;
  std::optional<absl::Duration> since_;  // by `steady`; none: it does not wait
  absl::Time since_time_;
  std::string told_;  // of which failure
  absl::Duration told_at_;
};

// Returns what runs a request by `run` again and again while the request's store is away. All other
// errors are returned as they come. Each run gets as much time as the first had. Thread-safe, if
// the functions of `parts` are.
StorageFunction WaitingStorage(std::string what, StorageFunction run, WaitParts parts);

// Fetches an input by http or https, and tells how many bytes of it are there as they come.
using HttpFetch =
    std::function<absl::StatusOr<FetchedInput>(const std::function<void(int64_t bytes)>& progress)>;

// Does it again and again while the server is away or does not answer in time. As WaitingStorage,
// the limit counts from the last bytes that came.
absl::StatusOr<FetchedInput> FetchWaiting(std::string what, const HttpFetch& fetch,
                                          const WaitParts& parts,
                                          const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
