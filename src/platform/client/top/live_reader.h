// LiveReader asks the service for views again and again, on a thread of its own, so that a service
// that does not answer holds up no key and no signal. When the service goes away it goes on asking,
// by a new connection each time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/top/live_view.h"

namespace tutti::client {

// Open and Take are for one thread.
class LiveReader {
 public:
  // Asks for the job `open` at first, "": for all. `interval`: between one answer and the next
  // question, and at least as long as that took. `on_news` is called on the reader's thread
  // whenever Take has something.
  LiveReader(Connect connect, std::string open, absl::Duration interval,
             std::function<void()> on_news);
  // Breaks the exchange off and joins.
  ~LiveReader();
  LiveReader(const LiveReader&) = delete;
  LiveReader& operator=(const LiveReader&) = delete;

  // Asks for that job from now on, "": for all; at once, unless it does so already.
  void Open(const std::string& job);
  // Returns the newest view, or why there is none, that was not taken yet.
  std::optional<absl::StatusOr<LiveView>> Take();

 private:
  void Run();
  absl::StatusOr<LiveView> Ask(const std::string& job);
  bool Pause(absl::Duration pause, const std::string& job);

  const Connect connect_;
  const absl::Duration interval_;
  const std::function<void()> on_news_;
  std::unique_ptr<ServiceClient> service_;  // the thread's own, but for Interrupt
  LiveView all_;                            // the last of all; the thread's own

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string open_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::StatusOr<LiveView>> news_ ABSL_GUARDED_BY(mutex_);
  ServiceClient* calling_ ABSL_GUARDED_BY(mutex_) = nullptr;  // to be broken off at the end
  std::thread thread_;
};

}  // namespace tutti::client
