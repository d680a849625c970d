// Finds out who keeps tensors waiting: ranks that have not announced what others have, for longer
// than a warning takes, and ranks of which nothing is heard though tensors wait for them (a stopped
// process, a host that is cut off), well before the membership gives them up. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runtime/comm/negotiation/coordination/coordination_message.h"

namespace tutti::comm {

struct StallOptions {
  absl::Duration warning = absl::Seconds(60);      // zero: never
  absl::Duration shutdown = absl::ZeroDuration();  // zero: never
  absl::Duration peer_timeout = absl::Seconds(4);  // silence is reported after half of it
};

// A tensor that waits, as the inspector sees it.
struct Waiting {
  const std::string* name;
  int set;
  absl::Duration since;
  absl::Duration* warned;    // when it was reported last; null: it is being run
  std::vector<int> missing;  // ranks of the world it waits for, or (being run) that take part
};

class StallInspector {
 public:
  StallInspector(const StallOptions& options, int size);

  // Returns how often to look.
  absl::Duration period() const;
  // Lists at most kMostStalls of each sort. `silence[r]`: for how long nothing has been heard of
  // rank r (empty: not known).
  std::vector<Stall> Inspect(const std::vector<Waiting>& waiting, absl::Duration now,
                             std::span<const absl::Duration> silence);
  // Returns the first that has waited for too long, if it has to end all.
  const Waiting* Hopeless(const std::vector<Waiting>& waiting, absl::Duration now) const;

  static constexpr size_t kMostStalls = 32;

 private:
  std::vector<Stall> Late(const std::vector<Waiting>& waiting, absl::Duration now) const;
  void Silent(int rank, absl::Duration silence, const std::vector<Waiting>& waiting,
              absl::Duration now, std::vector<Stall>& stalls);

  const StallOptions options_;
  std::vector<bool> reported_;  // the silence of a rank, until it is heard again
};

}  // namespace tutti::comm
