#include "platform/flow/metric_reports.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"

namespace tutti::flow {
namespace {

constexpr size_t kMostNames = 20;
constexpr size_t kLongestLine = 64 << 10;
constexpr size_t kShownLine = 120;

// Whether it is a number that may be a metric.
bool Report(const std::string& name, const nlohmann::json& value, absl::string_view metric,
            MetricReports& reports) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return false;
  if (name == metric) {
    reports.values.push_back(value.get<double>());
  } else if (!IsBookkeeping(name) && reports.other_names.size() < kMostNames) {
    reports.other_names.insert(name.substr(0, 80));
  }
  return name == metric || !IsBookkeeping(name);
}

// Returns the line with null in place of NaN and the infinities, which Python's json module writes
// as numbers and JSON does not have: the other metrics of such a line count.
std::string WithoutNotFinite(absl::string_view line) {
  std::string json;
  bool is_in_text = false;
  while (!line.empty()) {
    const size_t length = is_in_text && line[0] == '\\' ? 2 : 1;
    is_in_text ^= line[0] == '"';
    const bool is_number = !is_in_text && (absl::ConsumePrefix(&line, "NaN") ||
                                           absl::ConsumePrefix(&line, "Infinity") ||
                                           absl::ConsumePrefix(&line, "-Infinity"));
    absl::StrAppend(&json, is_number ? "null" : line.substr(0, length));
    if (!is_number) line.remove_prefix(std::min(length, line.size()));
  }
  return json;
}

nlohmann::json ParseLine(absl::string_view line) {
  auto parsed = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  const bool is_odd = parsed.is_discarded() &&
                      (absl::StrContains(line, "NaN") || absl::StrContains(line, "Infinity"));
  return is_odd ? nlohmann::json::parse(WithoutNotFinite(line), nullptr, false) : parsed;
}

// Whether the line is an event, or reports anything.
bool ReportLine(absl::string_view line, absl::string_view metric, MetricReports& reports) {
  const auto object = ParseLine(line);
  if (!object.is_object()) return false;
  const auto event = object.find("event");
  const auto name = object.find("name");
  const bool named = event != object.end() && *event == "metric" && name != object.end() &&
                     name->is_string() && object.contains("value");
  if (named) return Report(name->get<std::string>(), object["value"], metric, reports);
  bool any = event != object.end() && *event != "metric";
  for (const auto& [key, value] : object.items()) any |= Report(key, value, metric, reports);
  return any;
}

}  // namespace

bool IsBookkeeping(absl::string_view name) {
  static constexpr absl::string_view kNames[] = {"time",  "step", "steps",  "epoch",       "epochs",
                                                 "value", "rank", "images", "seconds_left"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

MetricReports ReportsInMetricsFile(absl::string_view text, absl::string_view metric) {
  MetricReports reports;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (line.size() > kLongestLine) continue;
    if (!ReportLine(line, metric, reports) && reports.odd_line.empty()) {
      reports.odd_line =
          base::BoundedUtf8(std::string(absl::StripAsciiWhitespace(line)), kShownLine);
    }
  }
  return reports;
}

std::vector<double> ReportsInMlflowFile(absl::string_view text) {
  std::vector<double> values;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double value = 0;
    if (words.size() >= 2 && absl::SimpleAtod(words[1], &value) && std::isfinite(value)) {
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace tutti::flow
