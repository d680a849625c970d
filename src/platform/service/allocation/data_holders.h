// DataHolders knows which nodes of a cluster have which data, where each node has a cache of its
// own: those on which a job that reads them has got ready, since data are there by then. What a
// node has removed since it does not know, so this is good for a wish and for nothing more
// (docs/decisions/083-nodes-that-have-the-data.md). In memory; at a start the jobs of the store
// tell it again. It does nothing in a service without such a compute.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "platform/service/attempt/job_placement.h"
#include "platform/service/jobs/event_listener.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

class DataHolders final : public EventListener {
 public:
  // The data that are known at most; beyond it those go that no job has read for longest.
  static constexpr size_t kMostData = 1000;
  static constexpr int kMostPastJobs = 1000;
  // The nodes that are known of each at most: a job looks at all of them under the lock.
  static constexpr size_t kMostNodes = 64;

  explicit DataHolders(SharedState& state);

  // Reads which nodes had what from the newest jobs of the store, by a thread that nobody waits
  // for.
  void ReadPast() ABSL_LOCKS_EXCLUDED(service_lock);
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  // Returns the nodes that have the most of the job's data, at least as many as the job asks for
  // and none of `avoid`; none if too few are known to have any.
  std::vector<std::string> NodesFor(const spec::JobSpec& job,
                                    const std::vector<std::string>& avoid) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  // Returns those of the nodes on which a job has just ended: they are free in a moment, though its
  // cluster may not say so yet.
  std::vector<std::string> BeingLeft(const std::string& compute,
                                     const std::vector<std::string>& nodes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

 private:
  struct Data {
    std::set<std::string> nodes;
    // Its number among all uses: 1, 2, …; of jobs that an earlier service has seen, the newest
    // first, -1, -2, …
    int64_t last_use = std::numeric_limits<int64_t>::min();
  };
  // Returns whether it keeps anything of jobs of that compute.
  bool IsOf(const std::string& compute) const { return computes_.contains(compute); }
  void Note(const spec::JobSpec& job, const Placement& placement, int64_t use)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Reads some jobs that came before that one. Returns the sequence of the last one of them, 0 if
  // there are no more.
  int64_t ReadSome(const store::JobFilter& which) ABSL_LOCKS_EXCLUDED(service_lock);
  void ReadOne(const store::JobRecord& record) ABSL_LOCKS_EXCLUDED(service_lock);
  void ForgetLongestUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const std::set<std::string, std::less<>> computes_;  // whose nodes have a cache each
  // The keys are a compute and what names the data.
  std::map<std::pair<std::string, std::string>, Data> data_ ABSL_GUARDED_BY(service_lock);
  // When a job last ended there, since boot, by compute and node.
  std::map<std::pair<std::string, std::string>, absl::Duration> left_ ABSL_GUARDED_BY(service_lock);
  int64_t uses_ ABSL_GUARDED_BY(service_lock) = 0;
  int64_t past_uses_ = 0;  // of the thread that reads them
};

}  // namespace tutti::service
