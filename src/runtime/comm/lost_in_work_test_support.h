// Tests that a rank may be lost at any moment of a work that never ends by itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/test_patience.h"
#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {

struct Loss {
  int victim = 0;
  int signal = SIGKILL;  // or SIGSTOP
  absl::Duration after;  // from its first round: any moment will do
};
// One round, with what it needs from round to round.
using Round = std::function<absl::Status()>;
using Work = std::function<Round(Communicator& group)>;

inline void SignalSelf(int signal, absl::Duration after) {
  std::thread([signal, until = base::Deadline::After(after)] {
    while (!until.Expired()) ::poll(nullptr, 0, until.RemainingMillis());
    ::kill(::getpid(), signal);
  }).detach();
}

// Works until an error. Whom it names, and how many seconds its last round took.
inline std::string LiveUntilLoss(const GroupOptions& options, const Work& work, const Loss& loss) {
  auto group = JoinGroup(options);
  if (!group.ok()) return absl::StrCat("-2 0 ", std::string(group.status().message()));
  const Round round = work(**group);
  absl::Status status = round();
  if (options.rank == loss.victim) SignalSelf(loss.signal, loss.after);
  absl::Time begun = absl::Now();
  while (status.ok()) {
    begun = absl::Now();
    status = round();
  }
  return absl::StrCat(LostRank(status).value_or(-1), " ",
                      absl::ToDoubleSeconds(absl::Now() - begun), " ",
                      std::string(status.message()));
}

inline void ExpectThatAllNameTheVictim(const std::vector<GroupOptions>& options, const Work& work,
                                       const Loss& loss, double within_seconds) {
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([&] { return LiveUntilLoss(one, work, loss); });
  }
  for (const GroupOptions& one : options) {
    if (one.rank == loss.victim) continue;
    const std::string report = ranks.Report(static_cast<size_t>(one.rank));
    int lost = -3;
    double seconds = 0;
    std::sscanf(report.c_str(), "%d %lf", &lost, &seconds);
    EXPECT_EQ(lost, loss.victim) << "rank " << one.rank << " of " << one.size << ": " << report;
    EXPECT_LT(seconds, within_seconds * base::TestPatience())
        << "rank " << one.rank << ": " << report;
  }
}

}  // namespace tutti::comm
