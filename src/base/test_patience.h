// Sets how long tests wait before they call something hung.
//
//   const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
//
// TUTTI_TEST_PATIENCE times as long as written: ./test sets it by what this machine does and by
// what else runs on it (tools/test-patience), by hand it may be anything from 1 on. Not where a
// short time is what a test is about.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::base {

inline double TestPatience() {
  const char* const given = std::getenv("TUTTI_TEST_PATIENCE");
  double factor = 1;
  return given != nullptr && absl::SimpleAtod(given, &factor) && factor > 1 ? factor : 1;
}

// Returns a limit of what must end by itself.
inline absl::Duration Patient(absl::Duration limit) { return limit * TestPatience(); }

// Returns a timeout that is to run out, such as the silence after which a rank is lost: a busy
// machine must not seem silent, but the test waits for as long. At most three times as long.
inline absl::Duration PatientTimeout(absl::Duration timeout) {
  return timeout * std::min(TestPatience(), 3.0);
}

// Looks until `holds()` does, for what announces itself by no event (a file that another process
// makes). When it does not within Patient(limit), the test fails at the caller's line; whether it
// holds is for those that cannot go on without.
template <class Condition>
bool AwaitPatiently(absl::Duration limit, const Condition& holds,
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const Deadline deadline = Deadline::After(Patient(limit));
  while (!holds()) {
    if (deadline.Expired()) {
      ADD_FAILURE_AT(file, line) << "what is awaited here did not come about within "
                                 << absl::FormatDuration(Patient(limit));
      return false;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace tutti::base
