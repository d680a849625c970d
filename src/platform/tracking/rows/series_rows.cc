#include "platform/tracking/rows/series_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/rows/point_blocks.h"
#include "platform/tracking/values/tracking_limits.h"

namespace tutti::tracking {
namespace {

using store::CachedStatement;
using store::SqliteConnection;

// Returns whether `b` rather than `a` is a run's last value. At equal step and time a number is
// later than NaN. A history has NaN last (BitsOf), so that its end and the last value differ in
// this alone.
bool IsBefore(const Point& a, const Point& b) {
  const auto order = [](const Point& point) {
    const bool is_number = !std::isnan(point.value);
    return std::tuple(point.step, point.time, is_number, is_number ? point.value : 0);
  };
  return order(a) < order(b);
}

struct Series {
  int64_t id = 0;
  std::optional<Point> last;
};

std::optional<Series> SelectSeries(SqliteConnection& sqlite, int64_t run, const std::string& key) {
  const CachedStatement row(sqlite,
                            "SELECT id, step, time_ms, bits FROM series WHERE run = ? AND key = ?");
  row->bind(1, run);
  row->bind(2, key);
  if (!row->executeStep()) return std::nullopt;
  return Series{row->getColumn(0).getInt64(),
                Point{row->getColumn(1).getInt64(), row->getColumn(2).getInt64(),
                      ValueOf(row->getColumn(3).getInt64())}};
}

void BindPoint(const CachedStatement& statement, int index, const Point& point) {
  if (std::isnan(point.value)) {
    statement->bind(index);
  } else {
    statement->bind(index, point.value);
  }
  statement->bind(index + 1, BitsOf(point.value));
  statement->bind(index + 2, point.step);
  statement->bind(index + 3, point.time);
}

int64_t InsertSeries(SqliteConnection& sqlite, int64_t run, const std::string& key,
                     const Point& last) {
  const CachedStatement insert(
      sqlite,
      "INSERT INTO series (run, key, value, bits, step, time_ms) VALUES (?, ?, ?, ?, ?, ?)");
  insert->bind(1, run);
  insert->bind(2, key);
  BindPoint(insert, 3, last);
  insert->exec();
  const int64_t series = sqlite.getLastInsertRowid();
  AddFirstBlock(sqlite, series);
  return series;
}

void UpdateLast(SqliteConnection& sqlite, int64_t series, const Point& last) {
  const CachedStatement update(
      sqlite, "UPDATE series SET value = ?, bits = ?, step = ?, time_ms = ? WHERE id = ?");
  BindPoint(update, 1, last);
  update->bind(5, series);
  update->exec();
}

// Returns whether the series is a new one. `points` are in order.
bool AddToSeries(SqliteConnection& sqlite, int64_t run, const std::string& key,
                 const std::vector<Point>& points) {
  const std::optional<Series> known = SelectSeries(sqlite, run, key);
  const Point& last = points.back();
  const int64_t series = known ? known->id : InsertSeries(sqlite, run, key, last);
  AddPoints(sqlite, series, points);
  if (known && IsBefore(*known->last, last)) UpdateLast(sqlite, series, last);
  return !known;
}

absl::Status CountNewSeries(SqliteConnection& sqlite, int64_t run, int64_t added) {
  if (added == 0) return absl::OkStatus();
  const CachedStatement update(sqlite,
                               "UPDATE runs SET series_count = series_count + ? WHERE sequence = ? "
                               "RETURNING series_count");
  update->bind(1, added);
  update->bind(2, run);
  update->executeStep();
  if (update->getColumn(0).getInt64() <= kMostKeysOfRun) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A run can have at most ", kMostKeysOfRun, " metrics of different names."));
}

}  // namespace

absl::Status AddMetrics(SqliteConnection& sqlite, int64_t run, const std::vector<Metric>& metrics) {
  std::map<std::string, std::vector<Point>> by_key;
  for (const Metric& metric : metrics) by_key[metric.key].push_back(metric.point);
  int64_t added = 0;
  for (auto& [key, points] : by_key) {
    std::stable_sort(points.begin(), points.end(), IsBefore);
    if (AddToSeries(sqlite, run, key, points)) ++added;
  }
  return CountNewSeries(sqlite, run, added);
}

std::vector<Metric> LastMetrics(SqliteConnection& sqlite, int64_t run) {
  std::vector<Metric> metrics;
  const CachedStatement rows(
      sqlite, "SELECT key, step, time_ms, bits FROM series WHERE run = ? ORDER BY key");
  rows->bind(1, run);
  while (rows->executeStep()) {
    metrics.push_back({rows->getColumn(0).getString(),
                       {rows->getColumn(1).getInt64(), rows->getColumn(2).getInt64(),
                        ValueOf(rows->getColumn(3).getInt64())}});
  }
  return metrics;
}

std::optional<int64_t> FindSeries(SqliteConnection& sqlite, int64_t run, const std::string& key) {
  const std::optional<Series> series = SelectSeries(sqlite, run, key);
  return series ? std::optional(series->id) : std::nullopt;
}

std::vector<Point> PointsAfter(SqliteConnection& sqlite, int64_t series,
                               const std::optional<Point>& after, int64_t limit) {
  std::vector<Point> points;
  const CachedStatement rows(sqlite,
                             "SELECT step, time_ms, bits FROM points WHERE series = ? AND "
                             "(step, time_ms, bits) > (?, ?, ?) "
                             "ORDER BY step, time_ms, bits LIMIT ?");
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  rows->bind(1, series);
  rows->bind(2, after ? after->step : kLeast);
  rows->bind(3, after ? after->time : kLeast);
  rows->bind(4, after ? BitsOf(after->value) : kLeast);
  rows->bind(5, limit);
  while (rows->executeStep()) {
    points.push_back({rows->getColumn(0).getInt64(), rows->getColumn(1).getInt64(),
                      ValueOf(rows->getColumn(2).getInt64())});
  }
  return points;
}

}  // namespace tutti::tracking
