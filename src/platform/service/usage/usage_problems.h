// Finds what the samples of a job show beyond doubt: memory that will not suffice, a rank that is
// slower than the others since it has no processor, that is stopped, or that waits for a disk. What
// may have other reasons, such as a rank that computes more than the others, is nobody's fault
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/service/logs/metric_series.h"
#include "platform/service/usage/node_history.h"

namespace tutti::service {

class UsageProblems {
 public:
  explicit UsageProblems(absl::Time now) : now_(now) {}
  // Looks at a node. Of one of which nothing was heard for half a minute there is nothing to say.
  void Add(const std::string& name, const NodeHistory& history);
  // Returns a line for each problem of the nodes that were added.
  std::vector<std::string> Lines() const;
  // Returns how many GPUs were busy on them in the last five minutes; nothing: it is not known.
  std::optional<double> gpus_busy() const { return gpus_busy_; }

 private:
  struct Wait {
    int rank;
    std::string node;
    double part;
  };

  void AddStates(const std::string& node, const NodeHistory& history);
  void AddWaits(const std::string& node, const NodeHistory& history);
  void AddMemory(const std::string& node, const NodeHistory& history);
  void AddGpus(const NodeHistory& history);
  std::vector<std::string> SlowRanks() const;

  const absl::Time now_;
  std::vector<std::string> lines_;
  // The part of the last minute in which each rank had no processor, where that is known.
  std::vector<Wait> waits_;
  std::optional<double> gpus_busy_;
};

// Returns a line where a rank's reports show that for half of the last five minutes or more it
// waited for data; nothing where they do not. They must have all parts of a step, as those of
// tutti-train (docs/formats/metrics.md), and reach to now. `gpus_busy`: of the job in that time;
// nothing: it is not known.
std::optional<std::string> DataWait(const std::vector<ReportedMetric>& reported,
                                    std::optional<double> gpus_busy, absl::Time now);

}  // namespace tutti::service
