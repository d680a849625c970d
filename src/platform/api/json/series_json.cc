#include "platform/api/json/series_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "platform/api/json/json_values.h"

namespace tutti::api {
namespace {

using service::MetricPoint;
using service::MetricSeries;

OrderedJson FiniteOrNull(std::optional<double> value) {
  return value && std::isfinite(*value) ? OrderedJson(*value) : OrderedJson(nullptr);
}

template <typename Number>
OrderedJson NumberOrNull(const std::optional<Number>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson ColumnsOf(const std::vector<MetricPoint>& points) {
  OrderedJson steps = OrderedJson::array(), times = steps, values = steps;
  for (const MetricPoint& point : points) {
    steps.push_back(NumberOrNull(point.step));
    times.push_back(FiniteOrNull(point.time));
    values.push_back(FiniteOrNull(point.value));
  }
  return {{"step", std::move(steps)}, {"time", std::move(times)}, {"value", std::move(values)}};
}

// Every n-th of the course and, as what people look for, the last point.
std::vector<MetricPoint> CourseOf(const MetricSeries& series, size_t most) {
  const std::vector<MetricPoint>& all = series.course;
  const size_t stride = most < 2 ? all.size() : (all.size() + most - 2) / (most - 1);
  std::vector<MetricPoint> course;
  for (size_t i = 0; i + 1 < all.size(); i += std::max<size_t>(stride, 1)) course.push_back(all[i]);
  if (!series.newest.empty()) course.push_back(series.newest.back());
  return course;
}

OrderedJson MetricOf(const MetricSeries& series, size_t points, size_t newest) {
  const MetricPoint last = series.newest.empty() ? MetricPoint{} : series.newest.back();
  const auto first =
      series.newest.end() - static_cast<std::ptrdiff_t>(std::min(newest, series.newest.size()));
  return {{"name", series.name},
          {"rank", series.rank},
          {"run", TextOrNull(series.run)},
          {"count", series.count},
          {"last", FiniteOrNull(last.value)},
          {"step", NumberOrNull(last.step)},
          {"min", NumberOrNull(series.min)},
          {"max", NumberOrNull(series.max)},
          {"course", ColumnsOf(CourseOf(series, points))},
          {"newest", ColumnsOf({first, series.newest.end()})}};
}

}  // namespace

std::string SeriesJson(const std::string& job, bool live, const std::vector<MetricSeries>& series,
                       size_t points, size_t newest) {
  OrderedJson metrics = OrderedJson::array();
  for (const MetricSeries& one : series) metrics.push_back(MetricOf(one, points, newest));
  return Text({{"job", job}, {"live", live}, {"metrics", std::move(metrics)}});
}

}  // namespace tutti::api
