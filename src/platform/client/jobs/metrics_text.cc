#include "platform/client/jobs/metrics_text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/sparkline.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

constexpr int kCourseColumns = 24;

std::string ShortNumber(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.6g", value) : "–";
}

std::string LastValue(const MetricSeriesView& metric) {
  return metric.last_not_finite.empty() ? ShortNumber(metric.last) : metric.last_not_finite;
}

// Returns "3 (first at 120)".
std::string NotFinite(const MetricSeriesView& metric) {
  if (metric.not_finite == 0) return "";
  const bool has_step = std::isfinite(metric.first_not_finite);
  return absl::StrCat(
      metric.not_finite,
      has_step ? absl::StrCat(" (first at ", ShortNumber(metric.first_not_finite), ")") : "");
}

// NaN is equal to NaN: something that was not told.
bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct NewPoint {
  std::string name;
  double step = 0, time = 0, value = 0;
};

}  // namespace

std::string MetricsTable(const JobMetricsView& metrics, const Screen& screen) {
  if (metrics.metrics.empty()) return "";
  using enum Table::Align;
  Table table({{.title = "Metric", .shrinks = true, .least = 12},
               {.title = "", .leaves = 3},
               {.title = "Last", .align = kRight},
               {.title = "Min", .align = kRight, .leaves = 2},
               {.title = "Max", .align = kRight, .leaves = 2},
               {.title = "Not finite", .align = kRight, .leaves = 2},
               {.title = "Step", .align = kRight, .leaves = 1}});
  for (const MetricSeriesView& metric : metrics.metrics) {
    const std::string course =
        screen.is_terminal ? Sparkline(metric.course.value, kCourseColumns) : "";
    table.Add({{metric.name, Tint::kBold},
               {course, Tint::kGreen},
               {LastValue(metric)},
               {ShortNumber(metric.min)},
               {ShortNumber(metric.max)},
               {NotFinite(metric)},
               {std::isfinite(metric.step) ? ShortNumber(metric.step) : ""}});
  }
  table.DropEmpty();
  return table.Render(screen.width, screen.colour);
}

std::vector<ReportedStep> NewReports::In(const JobMetricsView& metrics) {
  std::vector<NewPoint> points;
  for (const MetricSeriesView& metric : metrics.metrics) {
    const MetricPoints& newest = metric.newest;
    if (newest.value.empty()) continue;
    const auto [known, is_first] = last_.try_emplace({metric.run, metric.name});
    size_t from = newest.value.size();
    // A thinned course has other points each time: none that is older is new.
    const auto is_known = [&](size_t i) {
      if (is_first) return false;
      return newest.time[i] < known->second.time || newest.step[i] < known->second.step ||
             (IsSame(newest.value[i], known->second.value) &&
              IsSame(newest.step[i], known->second.step) &&
              IsSame(newest.time[i], known->second.time));
    };
    while (from > 0 && !is_known(from - 1)) --from;
    for (size_t i = from; i < newest.value.size(); ++i) {
      points.push_back({metric.name, newest.step[i], newest.time[i], newest.value[i]});
    }
    known->second = {newest.step.back(), newest.time.back(), newest.value.back()};
  }
  const auto when = [](const NewPoint& point) {
    return std::isnan(point.time) ? std::numeric_limits<double>::infinity() : point.time;
  };
  std::stable_sort(points.begin(), points.end(), [&](const NewPoint& a, const NewPoint& b) {
    return std::pair(when(a), std::isnan(a.step) ? 0 : a.step) <
           std::pair(when(b), std::isnan(b.step) ? 0 : b.step);
  });
  std::vector<ReportedStep> reports;
  for (NewPoint& point : points) {
    const auto fits = [&](const ReportedStep& report) {
      return report.step == point.step &&  // not where none was told
             std::none_of(report.values.begin(), report.values.end(),
                          [&](const auto& value) { return value.first == point.name; });
    };
    auto report = std::find_if(reports.begin(), reports.end(), fits);
    if (report == reports.end()) {
      report = reports.insert(report, {.step = point.step, .time = point.time});
    }
    report->values.emplace_back(std::move(point.name), point.value);
  }
  return reports;
}

std::string ReportLine(const ReportedStep& report, absl::TimeZone time_zone) {
  std::string line;
  if (std::isfinite(report.time)) {
    const absl::Time time = absl::UnixEpoch() + absl::Seconds(report.time);
    line = absl::FormatTime("%H:%M:%S  ", time, time_zone);
  }
  if (std::isfinite(report.step)) absl::StrAppend(&line, "step ", ShortNumber(report.step), "  ");
  for (const auto& [name, value] : report.values) {
    absl::StrAppend(&line, &name == &report.values.front().first ? "" : "  ", Printable(name), " ",
                    absl::StrFormat("%.6g", value));  // or "nan", "inf", "-inf"
  }
  return line;
}

}  // namespace tutti::client
