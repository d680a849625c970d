#include "platform/api/json/series_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "platform/api/json/json_values.h"

namespace tutti::api {
namespace {

using service::MetricPoint;
using service::MetricSpan;
using service::ReportedMetric;

OrderedJson FiniteOrNull(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

template <typename Number>
OrderedJson NumberOrNull(const std::optional<Number>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson NewestOf(const std::vector<MetricPoint>& points) {
  OrderedJson steps = OrderedJson::array(), times = steps, values = steps, not_finite = steps;
  for (const MetricPoint& point : points) {
    steps.push_back(NumberOrNull(point.step));
    times.push_back(NumberOrNull(point.time));
    values.push_back(FiniteOrNull(point.value));
    not_finite.push_back(TextOrNull(NotFinite(point.value)));
  }
  return {{"step", std::move(steps)},
          {"time", std::move(times)},
          {"value", std::move(values)},
          {"not_finite", std::move(not_finite)}};
}

OrderedJson CourseOf(const std::vector<MetricSpan>& spans) {
  OrderedJson steps = OrderedJson::array(), times = steps, values = steps;
  OrderedJson low = steps, high = steps, not_finite = steps;
  for (const MetricSpan& span : spans) {
    steps.push_back(NumberOrNull(span.last.step));
    times.push_back(NumberOrNull(span.last.time));
    values.push_back(FiniteOrNull(span.last.value));
    low.push_back(FiniteOrNull(span.values.least));
    high.push_back(FiniteOrNull(span.values.greatest));
    not_finite.push_back(span.not_finite);
  }
  return {{"step", std::move(steps)},   {"time", std::move(times)},
          {"value", std::move(values)}, {"low", std::move(low)},
          {"high", std::move(high)},    {"not_finite", std::move(not_finite)}};
}

OrderedJson MetricOf(const ReportedMetric& metric) {
  return {{"name", metric.name},
          {"rank", metric.rank},
          {"run", TextOrNull(metric.run)},
          {"count", metric.count},
          {"not_finite", metric.not_finite},
          {"first_not_finite", NumberOrNull(metric.first_not_finite)},
          {"last", FiniteOrNull(metric.last.value)},
          {"last_not_finite", TextOrNull(NotFinite(metric.last.value))},
          {"step", NumberOrNull(metric.last.step)},
          {"min", FiniteOrNull(metric.values.least)},
          {"max", FiniteOrNull(metric.values.greatest)},
          {"span", metric.span},
          {"first", metric.first},
          {"course", CourseOf(metric.course)},
          {"newest", NewestOf(metric.newest)}};
}

}  // namespace

std::string SeriesJson(const std::string& job, bool live,
                       const std::vector<ReportedMetric>& reported) {
  OrderedJson metrics = OrderedJson::array();
  for (const ReportedMetric& metric : reported) metrics.push_back(MetricOf(metric));
  return Text({{"job", job}, {"live", live}, {"metrics", std::move(metrics)}});
}

}  // namespace tutti::api
