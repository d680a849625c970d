// Computes what a job, a node or a rank uses, and writes it for people. Pure functions.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/client/connection/usage_view.h"

namespace tutti::client {

// Use is what a job, a node or a rank uses: while it runs the newest values, once it has ended the
// means over its life, the most memory and heat, and the least that was left. NaN means not known.
struct Use {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double cores = kUnknown;
  double memory = kUnknown, left = kUnknown;                                         // bytes
  double read = kUnknown, written = kUnknown, received = kUnknown, sent = kUnknown;  // a second
  // Of the job's GPUs: how many are busy, bytes in use and in all, watts, and degrees Celsius of
  // the hottest.
  double gpus = kUnknown, gpu_memory = kUnknown, gpu_memory_total = kUnknown;
  double gpu_power = kUnknown, gpu_temperature = kUnknown;
  absl::Duration age = absl::ZeroDuration();  // since the sample; of a sum that of the oldest
  bool is_partial = false;                    // of a sum: it lacks some

  // Returns whether anything is known.
  bool is_known() const;
  // Returns whether it is not quite what is used now: older than it should be, or without some.
  bool is_doubtful() const { return is_partial || age > kFresh; }

  // A launcher tells its samples each second; those of some 1,000 nodes take ten.
  static constexpr absl::Duration kFresh = absl::Seconds(10);
  // Values that are older do not count as what is used now.
  static constexpr absl::Duration kStillNow = absl::Seconds(45);
};

// Return what a node or a rank uses. `live` says that the job has its nodes, `asked` how long ago
// the view arrived.
Use UseOf(const NodeUsageView& node, bool live, absl::Duration asked = absl::ZeroDuration());
Use UseOf(const NodeUsageView& node, const RankUsageView& rank, bool live,
          absl::Duration asked = absl::ZeroDuration());

// UseSum adds up uses; of the memory that is left it takes the least. A use of which nothing is
// known makes the sum partial.
class UseSum {
 public:
  void Add(const Use& use);
  // Returns the sum of uses that share one machine's network cards: its traffic is counted once.
  Use OfOneMachine() const;
  Use Sum() const;

 private:
  Use sum_;
  bool lacks_ = false;
  double most_received_ = Use::kUnknown, most_sent_ = Use::kUnknown;
};

// Return the greatest value that is known, or the mean of them, each weighed by how many samples it
// is of (1 where that is not known); kUnknown if there is none.
double MostOf(const std::vector<double>& values);
double WeighedMean(const std::vector<double>& values, const std::vector<double>& samples);
// Adds a value to a sum. What is not known counts as 0, unless neither is known.
void AddTo(double& sum, double value);

// Write "1.97", "2.00 GB", "5.00 MB/s"; "" of what is not known; "~1.97" of what is doubtful.
std::string CoresText(const Use& use);
std::string AmountText(const Use& use, double bytes);
std::string RateText(const Use& use, double bytes);
// Write "1.50", "60.0 GB of 160 GB", "412 W", "61 °C" of GPUs, likewise.
std::string GpusText(const Use& use);
std::string GpuMemoryText(const Use& use);
std::string GpuPowerText(const Use& use);
std::string GpuTemperatureText(const Use& use);

}  // namespace tutti::client
