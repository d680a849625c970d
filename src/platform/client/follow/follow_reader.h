// FollowReader receives a job's stream over the network, on a thread of its own: when the service
// goes away it connects again and goes on after the last line that it handed out, so that the
// reader sees no gap and no repeat. Only what a job has ended with ends it, or an error that no new
// attempt can recover from.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/outage.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"

namespace tutti::client {

struct FollowReaderOptions {
  std::string cursor;  // start after this; "": from the first line
  bool follow = true;  // false: what there is now
  // False: of what ranks report, which may be very much, only what a JobDisplay shows.
  bool reports = true;
  absl::Duration first_pause = absl::Milliseconds(100);  // before a new attempt; doubles ...
  absl::Duration longest_pause = absl::Seconds(2);       // ... up to this
  absl::Duration give_up_after = kGiveUpAfter;           // without the service
};

// FollowItem is what the reader gets next: exactly one of these.
struct FollowItem {
  enum class Kind { kLine, kLost, kBack, kEnded, kFailed } kind = Kind::kLine;
  FollowLine line;             // kLine
  std::string raw;             // kLine: as it came
  absl::Status status;         // kLost: why; kFailed: the error that ends it
  std::optional<JobView> job;  // kEnded of a followed job: how it ended
};

// Next is for one thread.
class FollowReader {
 public:
  FollowReader(Connect connect, std::string job, FollowReaderOptions options);
  // Breaks the exchange off and joins.
  ~FollowReader();
  FollowReader(const FollowReader&) = delete;
  FollowReader& operator=(const FollowReader&) = delete;

  // Returns the next item, or nullopt at the deadline. After kEnded or kFailed there is none.
  std::optional<FollowItem> Next(base::Deadline deadline);

 private:
  enum class Attempt { kEnded, kAgain, kOver };
  void Run();
  Attempt Once(absl::Status& error);
  absl::Status OnLine(absl::string_view text);
  Attempt AfterTheEnd(ServiceClient& service, absl::Status& error);
  bool Pause(absl::Duration pause);
  // Hands over an item; false once the reader has gone. Blocks while the reader is far behind.
  bool Push(FollowItem item);

  const Connect connect_;
  const std::string job_;
  const FollowReaderOptions options_;
  std::string cursor_;     // of the last line that was pushed; the thread's own
  bool got_line_ = false;  // in the present attempt; the thread's own
  bool lost_ = false;      // kLost was pushed and kBack was not; the thread's own

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<FollowItem> items_ ABSL_GUARDED_BY(mutex_);
  ServiceClient* calling_ ABSL_GUARDED_BY(mutex_) = nullptr;  // to be broken off at the end
  std::thread thread_;
};

}  // namespace tutti::client
