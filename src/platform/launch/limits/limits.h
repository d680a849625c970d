// Lists the limits that the processes of a node are held to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/mpi/pmi_server.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/ranks/rank_table.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// The order that all processes of the node end.
struct StopOrder {
  absl::Status reason;
  std::optional<absl::Duration> grace;  // none: the plan's
};

// Limit is something that the processes of a node are held to as long as they run, such as the time
// limit. The next one is a file like time_limit.cc and a line in limits.cc. Not thread-safe.
class Limit {
 public:
  virtual ~Limit() = default;
  // Returns when Look is to be called next. Zero: now. InfiniteDuration: there is nothing to look
  // at. `ending`: the processes have been told to end, but some still run.
  virtual absl::Duration UntilNextLook(bool ending) const = 0;
  // Call it when that time is over. Returns an order if the limit is broken and the whole node is
  // to end for it.
  virtual std::optional<StopOrder> Look() = 0;
};

// LimitContext is what limits look at. All that it refers to outlives it.
struct LimitContext {
  const spec::LaunchPlan& plan;
  const NodeFacts& facts;
  RankTable* ranks;
  const ProcessLimit& process_limit;
  int most_processes;              // which process_limit holds, where it can
  const PmiServer* pmi = nullptr;  // of the job, on its first node; null: elsewhere, or none
};

// Makes the limits that this plan needs; they count from now on.
std::vector<std::unique_ptr<Limit>> LimitsOf(const LimitContext& context);

// Limits the wall time to that of the plan, plan.timeout_seconds; 0: none.
std::unique_ptr<Limit> MakeTimeLimit(const LimitContext& context);
// Limits the number of processes and threads, where there is no cgroup that holds it.
std::unique_ptr<Limit> MakeProcessCountLimit(const LimitContext& context);
// Returns the node's share of memory in bytes, to which launchers hold its processes; 0: to none.
// Slurm does not hold containers to what it has given, so that their launcher does.
int64_t MemoryShareOf(const LimitContext& context);
// Limits memory to the node's share: kills the rank that uses most and ends no other
// (memory_watch.h).
std::unique_ptr<Limit> MakeMemoryLimit(const LimitContext& context);
// Lets ranks that are an MPI world by PMI alone load no MPI that does not take part
// (singleton_watch.h).
std::unique_ptr<Limit> MakeMpiSingletonLimit(const LimitContext& context);
// Lets no rank leave the world that the others wait in (pmi_failure_watch.h).
std::unique_ptr<Limit> MakeMpiWorldLimit(const LimitContext& context);

}  // namespace tutti::launch
