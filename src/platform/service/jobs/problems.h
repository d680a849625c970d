// Problems collects what is broken now while the service goes on, for the log and for `tutti
// doctor`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/service_lock.h"

namespace tutti::service {

// An allocation, and the compute whose engine has it.
struct AllocationAt {
  std::string compute, allocation;
};

class Problems {
 public:
  // The job or the allocation that a problem is about; neither: the service itself.
  struct Subject {
    std::string job;
    AllocationAt at;
  };

  // Logs a failure once, not at every tick, and keeps it until it is over: Note is called with OK
  // for the same `about`, or its subject has ended.
  void Note(const std::string& about, const absl::Status& status, const Subject& subject = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Drops the problems of a job that has ended or been deleted; those of its allocations stay.
  void ForgetJob(absl::string_view job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void ForgetAllocations(const std::function<bool(const AllocationAt&)>& gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns all problems, a line each.
  std::vector<std::string> Lines() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  struct Problem {
    std::string why;
    Subject subject;
  };
  std::map<std::string, Problem> by_text_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
