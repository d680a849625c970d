// Follower tells followers what happened to a job: state changes from the store and lines from the
// logs, merged by time. The cursor says what it has been told; nothing is kept for it in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "platform/service/follow_result.h"
#include "platform/service/jobs/insertions.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {

// Cursor marks where a follower of a job stands: the last state change and the last line that it
// was told.
struct Cursor {
  int64_t event = 0;  // sequence of the last event; 0: none
  LogPosition position;
};

// Thread-safe. As a listener it wakes those that wait for news of the job.
class Follower final : public EventListener {
 public:
  Follower(SharedState& state, const JobTable& table, Insertions& insertions)
      : state_(state), table_(table), insertions_(insertions) {}

  // Do what the functions of Service of these names do. OnNewsOf reads no files.
  absl::StatusOr<FollowResult> Follow(absl::string_view id, absl::string_view cursor,
                                      base::Deadline deadline, const FollowFilter& filter)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<LinesPage> LinesBefore(absl::string_view id, absl::string_view before, int limit)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<Subscription> OnNewsOf(absl::string_view id, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Ends every wait.
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  // Holds what a follower of a job looks at. `news` is null once the job has ended.
  struct Watched {
    std::shared_ptr<Notifier> news;
    int64_t seen = 0;
    std::shared_ptr<JobLogs> logs;  // null before the job has any
    store::Event last;
    bool stopping = false;
  };
  absl::StatusOr<Watched> Watch(absl::string_view id) ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<FollowResult> WhatFollows(absl::string_view id, const Watched& job,
                                           const Cursor& from, const FollowFilter& filter) const;

  SharedState& state_;
  const JobTable& table_;
  Insertions& insertions_;
};

}  // namespace tutti::service
