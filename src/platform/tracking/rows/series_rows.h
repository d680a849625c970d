// Reads and writes the rows of what runs log under a key: a series and its last point.
// Internal to platform/tracking.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/store/sqlite_connection.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// Adds metrics to a run, in whichever order, with series that it did not have. InvalidArgument if
// they are too many for a run.
absl::Status AddMetrics(store::SqliteConnection& sqlite, int64_t run,
                        const std::vector<Metric>& metrics);
// Returns the last point of each series of a run, by key: the last is that of the highest step, of
// these the latest, of these the greatest.
std::vector<Metric> LastMetrics(store::SqliteConnection& sqlite, int64_t run);
std::optional<int64_t> FindSeries(store::SqliteConnection& sqlite, int64_t run,
                                  const std::string& key);
// Returns up to `limit` points of a series, those that come after that one.
std::vector<Point> PointsAfter(store::SqliteConnection& sqlite, int64_t series,
                               const std::optional<Point>& after, int64_t limit);

}  // namespace tutti::tracking
