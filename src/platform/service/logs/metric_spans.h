// MetricSpans keeps the course of a metric, however long it is, in few spans: each of as many
// consecutive points, a power of two. A span keeps the least and the greatest of its values, so
// that no peak is lost, and where in the file it begins, so that its points can be read again.
//
//   points   1 2 9 3 | 4 4 nan 5  | 6 7
//   spans    1 to 9  | 4 to 5     | 6 to 7     one value is not finite; the last ones: 3, 5, 7
//
// Plain values; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tutti::service {

struct MetricPoint {
  double value = 0;             // NaN, or infinite, where it was not finite
  std::optional<int64_t> step;  // a job that was begun again reports steps again
  std::optional<double> time;   // seconds since 1970
};

// Extent is the least and the greatest of some numbers; NaN: there are none.
struct Extent {
  double least = std::numeric_limits<double>::quiet_NaN();
  double greatest = std::numeric_limits<double>::quiet_NaN();

  void Add(const Extent& other);
};

struct MetricSpan {
  MetricPoint last;        // of its points
  Extent values;           // those that are finite
  int64_t not_finite = 0;  // how many are not
  Extent steps, times;     // those that are told
  uint64_t offset = 0;     // of its first point's line in the file, in bytes
};

// MetricRange is a part of a course: the points from one step or time to another, both included.
struct MetricRange {
  bool by_time = false;  // in seconds since 1970; else by step
  double from = -std::numeric_limits<double>::infinity();
  double to = std::numeric_limits<double>::infinity();
};

class MetricSpans {
 public:
  // Keeps `most` spans at most, 1 or more; and more than half as many once so many were needed.
  explicit MetricSpans(size_t most) : most_(most) {}

  // Adds the next point, whose line begins at `offset`.
  void Add(const MetricPoint& point, uint64_t offset);
  // Merges neighbours until there are `most` spans at most, which holds from now on.
  void Fit(size_t most);

  const std::vector<MetricSpan>& spans() const { return spans_; }
  int64_t points_each() const { return points_each_; }  // the last one may have fewer
  int64_t count() const { return count_; }              // of all points
  // Whether any point told its step. Where none did, a point's number, from 0, is its step.
  bool tells_steps() const { return tells_steps_; }
  uint64_t bytes() const { return spans_.capacity() * sizeof(MetricSpan); }

  // Which spans a range needs.
  struct Found {
    size_t overlapping = 0;       // how many have points in the range, or may have
    std::vector<size_t> numbers;  // theirs and those of their neighbours, in order
  };
  // Returns those that overlap the range, and a neighbour on each side of them, so that a line
  // leaves the picture at its edge. Where the range lies between two points, these two are needed.
  Found Find(const MetricRange& range) const;
  // Returns these spans as a course of their own, of `most` spans at most.
  MetricSpans Chosen(const std::vector<size_t>& numbers, size_t most) const;

 private:
  void MergeNeighbours();
  Extent ExtentOf(size_t number, const MetricRange& range) const;

  size_t most_;
  std::vector<MetricSpan> spans_;
  int64_t points_each_ = 1;
  int64_t count_ = 0;
  bool tells_steps_ = false;
};

// PointsInRange takes the points of a part of a file and keeps those that a range needs, as
// MetricSpans::Find does: each by itself, or in spans where there are more than `most`.
class PointsInRange {
 public:
  // The first point that comes has the number `first` in its course, which tells steps or not.
  PointsInRange(const MetricRange& range, int64_t first, bool tells_steps, size_t most)
      : range_(range), tells_steps_(tells_steps), number_(first), spans_(most) {}

  void Add(const MetricPoint& point, uint64_t offset);
  const MetricSpans& spans() const { return spans_; }
  int64_t first() const { return first_; }  // the number of the first point that it keeps

 private:
  // A point that came, and where it lies on the axis of the range; NaN: nowhere.
  struct Place {
    MetricPoint point;
    uint64_t offset = 0;
    double at = 0;
    bool is_kept = false;
  };
  void Keep(Place& place, int64_t number);

  const MetricRange range_;
  const bool tells_steps_;
  int64_t number_;  // of the next point
  int64_t first_ = 0;
  std::optional<Place> before_;  // the last point that came
  MetricSpans spans_;
};

}  // namespace tutti::service
