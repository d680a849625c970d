// LiveView is what the service said at one time of its nodes and jobs, or of one job and its ranks:
// what `tutti top` shows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/usage_view.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/use.h"

namespace tutti::client {

// TimedUsage is a job's usage, which may be from an earlier view.
struct TimedUsage {
  absl::Time time;  // when it came
  JobUsageView usage;
};

struct LiveView {
  absl::Time time = absl::InfinitePast();  // when it was complete; nothing was asked before
  std::string open;                        // the job that it is of; "": of all

  // A view of all nodes and jobs has:
  NodesView nodes;
  std::vector<JobView> jobs;   // that have not ended, steps and trials that have nodes among them
  bool has_more_jobs = false;  // than are listed

  // A view of one job has:
  std::optional<JobView> job;

  std::map<std::string, TimedUsage> usage;  // by job, of those that have processes

  // Return what a job uses, or a node by all of its jobs; nothing is known of what was not asked.
  Use UseOfJob(const std::string& id) const;
  Use UseOfNode(const NodeView& node) const;
  // Returns how old the answer is that tells it of a job; zero where there is none.
  absl::Duration AgeOfUsage(const std::string& id) const;
};

// At most so many jobs are asked in one view what they use; for others it is kept from before.
inline constexpr size_t kMostAskedJobs = 32;

// Asks for all. `before`: the view of all before this one. Of more jobs than can be asked at once
// those come first that were asked longest ago.
absl::StatusOr<LiveView> AskForAll(ServiceClient& service, const LiveView& before);
// Asks for one job, by its id.
absl::StatusOr<LiveView> AskForJob(ServiceClient& service, const std::string& id);

}  // namespace tutti::client
