// What a job, a node or a rank uses, and how people read it.
#pragma once

#include <limits>
#include <string>

#include "absl/time/time.h"
#include "platform/client/connection/usage_view.h"

namespace tutti::client {

// Of what runs the newest values, of what has ended the means over its life, the most memory and
// the least that was left. NaN: not known.
struct Use {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  double cores = kUnknown;
  double memory = kUnknown, left = kUnknown;                                         // bytes
  double read = kUnknown, written = kUnknown, received = kUnknown, sent = kUnknown;  // a second
  absl::Duration age = absl::ZeroDuration();  // since the sample; of a sum that of the oldest
  bool is_partial = false;                    // of a sum: it lacks some

  // Returns whether anything is known.
  bool is_known() const;
  // Returns whether it is not quite what is used now: older than it should be, or without some.
  bool is_doubtful() const { return is_partial || age > kFresh; }

  // A launcher tells its samples each second; those of some 1,000 nodes take ten.
  static constexpr absl::Duration kFresh = absl::Seconds(10);
  // What is older is not what is used now, so that it is not known.
  static constexpr absl::Duration kStillNow = absl::Seconds(45);
};

// `live`: the job has its nodes. `asked`: how long ago the view came.
Use UseOf(const NodeUsageView& node, bool live, absl::Duration asked = absl::ZeroDuration());
Use UseOf(const NodeUsageView& node, const RankUsageView& rank, bool live,
          absl::Duration asked = absl::ZeroDuration());

// Sums up what those that are added use; the memory that is left is the least. One of which nothing
// is known makes the sum a part.
class UseSum {
 public:
  void Add(const Use& use);
  // Has all that were added as they share one machine's network cards: its traffic is counted once.
  Use OfOneMachine() const;
  Use Sum() const;

 private:
  Use sum_;
  bool lacks_ = false;
  double most_received_ = Use::kUnknown, most_sent_ = Use::kUnknown;
};

// Write "1.97", "2.00 GB", "5.00 MB/s"; "" of what is not known; "~1.97" of what is doubtful.
std::string CoresText(const Use& use);
std::string AmountText(const Use& use, double bytes);
std::string RateText(const Use& use, double bytes);

}  // namespace tutti::client
