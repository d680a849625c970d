#include "platform/service/logs/metric_spans.h"

#include <algorithm>
#include <cmath>

namespace tutti::service {
namespace {

template <typename Number>
Extent ExtentOfOne(const std::optional<Number>& number) {
  if (!number) return {};
  return {static_cast<double>(*number), static_cast<double>(*number)};
}

MetricSpan SpanOf(const MetricPoint& point, uint64_t offset) {
  const bool is_finite = std::isfinite(point.value);
  return {.last = point,
          .values = is_finite ? Extent{point.value, point.value} : Extent{},
          .not_finite = is_finite ? 0 : 1,
          .steps = ExtentOfOne(point.step),
          .times = ExtentOfOne(point.time),
          .offset = offset};
}

void AddNext(const MetricSpan& next, MetricSpan& span) {
  span.last = next.last;
  span.values.Add(next.values);
  span.not_finite += next.not_finite;
  span.steps.Add(next.steps);
  span.times.Add(next.times);
}

bool Overlap(const Extent& extent, const MetricRange& range) {
  return extent.least <= range.to && extent.greatest >= range.from;
}

bool IsBetween(const MetricRange& range, const Extent& before, const Extent& after) {
  return before.greatest < range.from && after.least > range.to;
}

}  // namespace

// Of two numbers fmin and fmax return the one that is not NaN.
void Extent::Add(const Extent& other) {
  least = std::fmin(least, other.least);
  greatest = std::fmax(greatest, other.greatest);
}

void MetricSpans::Add(const MetricPoint& point, uint64_t offset) {
  tells_steps_ |= point.step.has_value();
  if (count_ % points_each_ == 0 && spans_.size() >= most_) MergeNeighbours();
  if (count_ % points_each_ == 0) {
    spans_.push_back(SpanOf(point, offset));
  } else {
    AddNext(SpanOf(point, offset), spans_.back());
  }
  ++count_;
}

void MetricSpans::Fit(size_t most) {
  most_ = most;
  while (spans_.size() > most_) MergeNeighbours();
}

void MetricSpans::MergeNeighbours() {
  size_t kept = 0;
  for (size_t i = 0; i < spans_.size(); i += 2, ++kept) {
    spans_[kept] = spans_[i];
    if (i + 1 < spans_.size()) AddNext(spans_[i + 1], spans_[kept]);
  }
  spans_.resize(kept);
  points_each_ *= 2;
}

Extent MetricSpans::ExtentOf(size_t number, const MetricRange& range) const {
  if (range.by_time) return spans_[number].times;
  if (tells_steps_) return spans_[number].steps;
  const int64_t first = static_cast<int64_t>(number) * points_each_;
  const int64_t last = std::min(first + points_each_, count_) - 1;
  return {static_cast<double>(first), static_cast<double>(last)};
}

MetricSpans::Found MetricSpans::Find(const MetricRange& range) const {
  Found found;
  std::vector<bool> is_needed(spans_.size() + 2);  // that of number i at i + 1
  Extent before;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Extent extent = ExtentOf(i, range);
    if (Overlap(extent, range)) {
      ++found.overlapping;
      is_needed[i] = is_needed[i + 1] = is_needed[i + 2] = true;
    } else if (IsBetween(range, before, extent)) {
      is_needed[i] = is_needed[i + 1] = true;
    }
    before = extent;
  }
  for (size_t i = 0; i < spans_.size(); ++i) {
    if (is_needed[i + 1]) found.numbers.push_back(i);
  }
  return found;
}

MetricSpans MetricSpans::Chosen(const std::vector<size_t>& numbers, size_t most) const {
  MetricSpans chosen(most);
  chosen.points_each_ = points_each_;
  chosen.tells_steps_ = tells_steps_;
  for (const size_t number : numbers) {
    chosen.spans_.push_back(spans_[number]);
    const int64_t first = static_cast<int64_t>(number) * points_each_;
    chosen.count_ += std::min(points_each_, count_ - first);
  }
  chosen.Fit(most);
  return chosen;
}

void PointsInRange::Add(const MetricPoint& point, uint64_t offset) {
  const int64_t number = number_++;
  const Extent extent = range_.by_time ? ExtentOfOne(point.time)
                        : tells_steps_ ? ExtentOfOne(point.step)
                                       : ExtentOfOne(std::optional(number));
  Place place{.point = point, .offset = offset, .at = extent.least};
  if (before_) {
    const Extent before{before_->at, before_->at};
    const bool is_needed =
        Overlap(before, range_) || Overlap(extent, range_) || IsBetween(range_, before, extent);
    if (is_needed) Keep(*before_, number - 1);
    if (is_needed) Keep(place, number);
  } else if (Overlap(extent, range_)) {
    Keep(place, number);
  }
  before_ = place;
}

void PointsInRange::Keep(Place& place, int64_t number) {
  if (place.is_kept) return;
  place.is_kept = true;
  if (spans_.count() == 0) first_ = number;
  spans_.Add(place.point, place.offset);
}

}  // namespace tutti::service
