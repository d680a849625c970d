#include "platform/service/logs/metric_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/flow/metric_reports.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {
namespace {

constexpr uint64_t kMostOfAFile = uint64_t{64} << 20;
constexpr size_t kMostJobs = 64;
constexpr size_t kLongestName = 250;

// Returns what precedes the names of the fields of such a line; nothing: they are no metrics.
std::optional<std::string> PrefixOf(absl::string_view event) {
  if (event.empty() || event == "step") return "";
  if (event == "evaluation") return "evaluation/";
  return std::nullopt;
}

std::string TextIn(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> NumberIn(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

MetricPoint PointOf(const nlohmann::json& line, const nlohmann::json& value) {
  MetricPoint point{.value = value.is_number() ? value.get<double>()
                                               : std::numeric_limits<double>::quiet_NaN()};
  const std::optional<double> step = NumberIn(line, "step");
  if (step && std::abs(*step) < 1e15) point.step = static_cast<int64_t>(*step);
  point.time = NumberIn(line, "time");
  return point;
}

}  // namespace

void MetricSeries::Add(const MetricPoint& point) {
  if (count % stride_ == 0) course.push_back(point);
  if (course.size() > kMostCourse) {
    size_t kept = 0;
    for (size_t i = 0; i < course.size(); i += 2) course[kept++] = course[i];
    course.resize(kept);
    stride_ *= 2;
  }
  ++count;
  newest.push_back(point);
  if (newest.size() > kMostNewest) newest.pop_front();
  if (!std::isfinite(point.value)) return;
  min = std::min(min.value_or(point.value), point.value);
  max = std::max(max.value_or(point.value), point.value);
}

absl::StatusOr<std::vector<MetricSeries>> LoggedMetrics::ReadOn(std::optional<int> rank) {
  std::map<int, std::vector<std::filesystem::path>> paths;
  for (const LogStream stream : {LogStream::kMetrics, LogStream::kMlflow}) {
    TUTTI_ASSIGN_OR_RETURN(const auto files, RankFiles(logs_, stream));
    for (const auto& [number, path] : files) {
      if (!rank || *rank == number) paths[number].push_back(path);
    }
  }
  for (const auto& [number, of_rank] : paths) {
    Rank& known = ranks_[number];
    for (const std::filesystem::path& path : of_rank) {
      const auto [file, is_new] = known.files.try_emplace(path, path);
      if (is_new) file->second.BeginAtTheLast(kMostOfAFile);
      const auto take = [&, at = number](absl::string_view lines) {
        for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
          TakeLine(at, line, known);
        }
      };
      TUTTI_RETURN_IF_ERROR(file->second.ReadOn(/*to_the_end=*/false, take).status());
    }
    if (!known.series.empty()) {
      return std::vector<MetricSeries>(known.series.begin(), known.series.end());
    }
  }
  return std::vector<MetricSeries>();
}

void LoggedMetrics::TakeLine(int number, absl::string_view text, Rank& rank) {
  const auto line = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!line.is_object()) return;
  const std::string event = TextIn(line, "event"), name = TextIn(line, "name");
  if (event == "metric") {
    const auto value = line.find("value");
    if (name.empty() || value == line.end() || !(value->is_number() || value->is_null())) return;
    MetricSeries* const series = Find(number, TextIn(line, "run"), name, rank);
    if (series == nullptr) return;
    series->nested = line.contains("nested");
    series->Add(PointOf(line, *value));
    return;
  }
  const std::optional<std::string> prefix = PrefixOf(event);
  if (!prefix) return;
  for (const auto& [key, value] : line.items()) {
    if (!value.is_number() || flow::IsBookkeeping(key)) continue;
    MetricSeries* const series = Find(number, "", absl::StrCat(*prefix, key), rank);
    if (series != nullptr) series->Add(PointOf(line, value));
  }
}

MetricSeries* LoggedMetrics::Find(int number, const std::string& run, const std::string& name,
                                  Rank& rank) {
  const std::string bounded = base::BoundedUtf8(name, kLongestName);
  const Key key(run, bounded);
  if (const auto found = rank.by_key.find(key); found != rank.by_key.end()) return found->second;
  if (rank.series.size() >= kMostSeries) return nullptr;
  MetricSeries& series = rank.series.emplace_back();
  series.name = bounded;
  series.rank = number;
  series.run = run;
  rank.by_key[key] = &series;
  return &series;
}

std::vector<MetricSeries> SeriesToShow(std::vector<MetricSeries> series) {
  const bool any_own = std::any_of(series.begin(), series.end(),
                                   [](const MetricSeries& one) { return !one.nested; });
  std::set<std::string> in_file;
  for (const MetricSeries& one : series) {
    if (one.run.empty()) in_file.insert(one.name);
  }
  std::erase_if(series, [&](const MetricSeries& one) {
    return (any_own && one.nested) || (!one.run.empty() && in_file.contains(one.name));
  });
  return series;
}

std::vector<mlflow::Metric> LastValues(const std::vector<MetricSeries>& series) {
  std::map<std::string, MetricPoint> last;
  for (const MetricSeries& one : series) {
    if (one.newest.empty()) continue;
    const MetricPoint& point = one.newest.back();
    const auto [known, is_new] = last.emplace(one.name, point);
    if (!is_new && known->second.time.value_or(0) <= point.time.value_or(0)) known->second = point;
  }
  std::vector<mlflow::Metric> values;
  for (const auto& [name, point] : last) {
    values.push_back({name, point.value, point.step.value_or(0)});
  }
  return values;
}

absl::StatusOr<std::vector<MetricSeries>> MetricsOfJobs::Read(
    const std::filesystem::path& job_folder, int64_t sequence, std::optional<int> rank) {
  const std::shared_ptr<Entry> entry = Find(job_folder, sequence);
  absl::MutexLock lock(&entry->mutex);
  TUTTI_ASSIGN_OR_RETURN(std::vector<MetricSeries> series, entry->metrics.ReadOn(rank));
  return SeriesToShow(std::move(series));
}

std::shared_ptr<MetricsOfJobs::Entry> MetricsOfJobs::Find(const std::filesystem::path& job_folder,
                                                          int64_t sequence) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(latest_.begin(), latest_.end(), [&](const auto& entry) {
    return entry->folder == job_folder && entry->sequence == sequence;
  });
  if (found != latest_.end()) {
    latest_.splice(latest_.begin(), latest_, found);
  } else {
    latest_.push_front(std::make_shared<Entry>(job_folder, sequence));
  }
  if (latest_.size() > kMostJobs) latest_.pop_back();
  return latest_.front();
}

}  // namespace tutti::service
