// Keeps the points of a series in blocks, so that the n-th of a million is found without counting
// them: a block counts the points from its own place on, up to the next block's place. Internal to
// platform/tracking.
//
// Invariant: a series has a block at the least place of all, and the counts of its blocks are those
// of its points. A block that has grown is split, in whichever order points come; but where all of
// its points have one place it stays whole until it has doubled, so that to add a point takes the
// same time however many there are.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "platform/store/sqlite_connection.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// Place is where a point lies in its series.
struct Place {
  int64_t step = std::numeric_limits<int64_t>::min();
  int64_t time = std::numeric_limits<int64_t>::min();
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Returns a value as SQLite keeps it exactly, also one that is no number, and in its order: what is
// no number comes last.
int64_t BitsOf(double value);
double ValueOf(int64_t bits);

// Adds the first block of a series that has no points yet.
void AddFirstBlock(store::SqliteConnection& sqlite, int64_t series);
// Adds points, which are in the order of their places. One that is there already, with the same
// value, is not added: a call that is repeated changes nothing.
void AddPoints(store::SqliteConnection& sqlite, int64_t series, const std::vector<Point>& points);

struct StepRange {
  int64_t first = std::numeric_limits<int64_t>::min();
  int64_t last = std::numeric_limits<int64_t>::max();
};

// Returns how many points of a series lie in the range.
int64_t CountPoints(store::SqliteConnection& sqlite, int64_t series, const StepRange& range);
// Returns `most` of them at most, spread evenly over their number, with the first and the last (the
// last alone, if it is to be one); all, if there are no more.
std::vector<Point> SamplePoints(store::SqliteConnection& sqlite, int64_t series,
                                const StepRange& range, int64_t most);

}  // namespace tutti::tracking
