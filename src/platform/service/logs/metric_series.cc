#include "platform/service/logs/metric_series.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {
namespace {

constexpr size_t kMostJobs = 64;
constexpr size_t kLongestMetricName = 250;
constexpr uint64_t kBytesOfAMetric = 1024;  // beside its spans and points, about

// Makes the key of a value's series in its file. Its second part, from NameIn on, is the name.
void SetKey(absl::string_view run, const ReportedLine::Value& value, std::string& key) {
  key.assign(run.data(), run.size());
  key.push_back('\0');
  if (value.prefix.size() + value.name.size() <= kLongestMetricName) {
    absl::StrAppend(&key, value.prefix, value.name);
  } else {
    const std::string name = absl::StrCat(value.prefix, value.name);
    absl::StrAppend(&key, base::BoundedUtf8(name, kLongestMetricName));
  }
}

std::string NameIn(const std::string& key, absl::string_view run) {
  return key.substr(run.size() + 1);
}

// Calls `take` with each line, without its newline, and where it begins. Whether GrowingFile passes
// over a line that is too long depends on how it came; a series has the same points each time.
template <typename TakeLine>
void ForEachLine(absl::string_view lines, uint64_t offset, const TakeLine& take) {
  while (!lines.empty()) {
    const size_t length = std::min(lines.find('\n'), lines.size() - 1);
    if (length <= JobLogs::kMaxLine) take(lines.substr(0, length), offset);
    lines.remove_prefix(length + 1);
    offset += length + 1;
  }
}

MetricPoint PointOf(const ReportedLine& line, const ReportedLine::Value& value) {
  return {.value = value.value, .step = line.step(), .time = line.time()};
}

}  // namespace

void MetricSeries::Add(const MetricPoint& point, uint64_t offset) {
  spans_.Add(point, offset);
  newest_.push_back(point);
  if (newest_.size() > kMostNewest) newest_.pop_front();
  if (std::isfinite(point.value)) {
    values_.Add({point.value, point.value});
  } else {
    if (not_finite_++ == 0) first_not_finite_ = point.step;
  }
}

uint64_t MetricSeries::bytes() const {
  return kBytesOfAMetric + spans_.bytes() + newest_.size() * sizeof(MetricPoint);
}

ReportedMetric MetricSeries::Report(const MetricQuery& query, std::optional<Part>* part) const {
  ReportedMetric report{.name = name_,
                        .rank = rank_,
                        .run = run_,
                        .count = spans_.count(),
                        .not_finite = not_finite_,
                        .first_not_finite = first_not_finite_,
                        .values = values_};
  if (!newest_.empty()) report.last = newest_.back();
  const size_t newest = std::min(query.newest, newest_.size());
  report.newest.assign(newest_.end() - static_cast<std::ptrdiff_t>(newest), newest_.end());
  if (query.points == 0) return report;
  if (!query.range) {
    MetricSpans whole = spans_;
    whole.Fit(query.points);
    report.SetCourse(whole, /*first_point=*/0);
    return report;
  }
  const size_t most = query.points + 2;
  const MetricSpans::Found found = spans_.Find(*query.range);
  if (found.numbers.empty()) return report;
  const int64_t first = static_cast<int64_t>(found.numbers.front()) * spans_.points_each();
  const bool are_fine = spans_.points_each() == 1 || 2 * found.overlapping >= query.points;
  if (are_fine || part == nullptr) {
    report.SetCourse(spans_.Chosen(found.numbers, most), first);
    return report;
  }
  const std::vector<MetricSpan>& spans = spans_.spans();
  part->emplace(Part{.begin = spans[found.numbers.front()].offset,
                     .end = std::nullopt,
                     .points = {*query.range, first, spans_.tells_steps(), most}});
  const size_t next = found.numbers.back() + 1;
  if (next < spans.size()) (*part)->end = spans[next].offset;
  return report;
}

void ReportedMetric::SetCourse(const MetricSpans& spans, int64_t first_point) {
  course = spans.spans();
  span = spans.points_each();
  first = course.empty() ? 0 : first_point;
}

absl::StatusOr<std::vector<ReportedMetric>> LoggedMetrics::Read(const MetricQuery& query) {
  std::vector<ReportedMetric> metrics;
  std::vector<Again> again;
  {
    absl::MutexLock lock(&mutex_);
    TUTTI_ASSIGN_OR_RETURN(const Rank* const rank, ReadOn(query.rank));
    if (rank == nullptr) return metrics;
    const std::vector<const Kept*> shown = Shown(*rank, query.metric);
    metrics.reserve(shown.size());
    for (const Kept* const kept : shown) {
      std::optional<MetricSeries::Part> part;
      metrics.push_back(kept->series.Report(query, &part));
      if (!part) continue;
      again.push_back({kept->file->path, part->begin,
                       part->end.value_or(kept->file->lines.position()), kept->key, part->points,
                       &metrics.back()});
    }
    Forget(*rank);
  }
  TUTTI_RETURN_IF_ERROR(ReadAgain(again));
  return metrics;
}

absl::StatusOr<LoggedMetrics::Rank*> LoggedMetrics::ReadOn(std::optional<int> rank) {
  std::map<int, std::vector<std::filesystem::path>> paths;
  for (const LogStream stream : {LogStream::kMetrics, LogStream::kMlflow}) {
    TUTTI_ASSIGN_OR_RETURN(const auto files, RankFiles(logs_, stream));
    for (const auto& [number, path] : files) {
      if (!rank || *rank == number) paths[number].push_back(path);
    }
  }
  for (const auto& [number, of_rank] : paths) {
    Rank& read = ranks_[number];
    TUTTI_RETURN_IF_ERROR(ReadFiles(number, of_rank, read));
    if (!read.kept.empty()) return &read;
  }
  return nullptr;
}

absl::Status LoggedMetrics::ReadFiles(int number, const std::vector<std::filesystem::path>& paths,
                                      Rank& rank) {
  for (const std::filesystem::path& path : paths) {
    File& file = rank.files.try_emplace(path, path).first->second;
    const auto take = [&](absl::string_view lines, uint64_t begin) {
      ForEachLine(lines, begin, [&](absl::string_view line, uint64_t offset) {
        if (file.line.Read(line)) TakeLine(number, offset, rank, file);
      });
    };
    TUTTI_RETURN_IF_ERROR(file.lines.ReadOn(/*to_the_end=*/false, take).status());
  }
  rank.bytes = 0;
  for (const Kept& kept : rank.kept) rank.bytes += kept.series.bytes();
  return absl::OkStatus();
}

void LoggedMetrics::TakeLine(int number, uint64_t offset, Rank& rank, File& file) {
  const ReportedLine& line = file.line;
  for (const ReportedLine::Value& value : line.values()) {
    SetKey(line.run(), value, file.key);
    const auto found = file.by_key.find(file.key);
    MetricSeries* series = found != file.by_key.end() ? found->second : nullptr;
    if (series == nullptr && rank.kept.size() < kMostSeries) {
      series = Begin({NameIn(file.key, line.run()), number, std::string(line.run())}, rank, file);
    }
    if (series == nullptr) continue;
    series->set_nested(line.nested());
    series->Add(PointOf(line, value), offset);
  }
}

MetricSeries* LoggedMetrics::Begin(MetricSeries series, Rank& rank, File& file) {
  MetricSeries& kept = rank.kept.emplace_back(Kept{std::move(series), &file, file.key}).series;
  file.by_key[file.key] = &kept;
  const size_t most = std::bit_floor(kMostSpans / rank.kept.size());
  for (Kept& one : rank.kept) one.series.Fit(std::min(most, MetricSeries::kMostSpans));
  return &kept;
}

void LoggedMetrics::Forget(const Rank& all_but) {
  uint64_t bytes = 0;
  for (const auto& [number, rank] : ranks_) bytes += rank.bytes;
  if (bytes <= most_bytes_) return;
  std::erase_if(ranks_, [&](const auto& rank) { return &rank.second != &all_but; });
}

uint64_t LoggedMetrics::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& [number, rank] : ranks_) bytes += rank.bytes;
  return bytes;
}

std::vector<const LoggedMetrics::Kept*> LoggedMetrics::Shown(const Rank& rank,
                                                             const std::string& metric) {
  bool any_own = false;
  std::set<std::string> in_file;
  for (const Kept& kept : rank.kept) {
    any_own |= !kept.series.nested();
    if (kept.series.run().empty()) in_file.insert(kept.series.name());
  }
  std::vector<const Kept*> shown;
  for (const Kept& kept : rank.kept) {
    const MetricSeries& series = kept.series;
    if (any_own && series.nested()) continue;
    if (!series.run().empty() && in_file.contains(series.name())) continue;
    if (metric.empty() || series.name() == metric) shown.push_back(&kept);
  }
  return shown;
}

absl::Status LoggedMetrics::ReadAgain(std::vector<Again>& parts) {
  std::map<std::filesystem::path, absl::flat_hash_map<std::string, Again*>> by_path;
  for (Again& part : parts) by_path[part.path][part.key] = &part;
  ReportedLine line;
  std::string key;
  for (const auto& [path, by_key] : by_path) {
    uint64_t begin = ~uint64_t{0}, end = 0;
    for (const auto& [of, part] : by_key) {
      begin = std::min(begin, part->begin);
      end = std::max(end, part->end);
    }
    const auto take = [&, &known = by_key](absl::string_view lines, uint64_t at) {
      ForEachLine(lines, at, [&](absl::string_view text, uint64_t offset) {
        line.Read(text);
        for (const ReportedLine::Value& value : line.values()) {
          SetKey(line.run(), value, key);
          const auto found = known.find(key);
          if (found == known.end()) continue;
          Again& part = *found->second;
          if (offset < part.begin || offset >= part.end) continue;
          part.points.Add(PointOf(line, value), offset);
        }
      });
    };
    GrowingFile file(path, JobLogs::kMaxLine, begin);
    TUTTI_RETURN_IF_ERROR(file.ReadOn(/*to_the_end=*/false, take, end).status());
  }
  for (Again& part : parts) part.metric->SetCourse(part.points.spans(), part.points.first());
  return absl::OkStatus();
}

std::vector<mlflow::Metric> LastValues(const std::vector<ReportedMetric>& metrics) {
  std::map<std::string, MetricPoint> last;
  for (const ReportedMetric& metric : metrics) {
    const auto [known, is_new] = last.emplace(metric.name, metric.last);
    const double until = known->second.time.value_or(0);
    if (!is_new && until <= metric.last.time.value_or(0)) known->second = metric.last;
  }
  std::vector<mlflow::Metric> values;
  for (const auto& [name, point] : last) {
    values.push_back({name, point.value, point.step.value_or(0)});
  }
  return values;
}

absl::StatusOr<std::vector<ReportedMetric>> MetricsOfJobs::Read(
    const std::filesystem::path& job_folder, int64_t sequence, const MetricQuery& query) {
  const std::shared_ptr<Entry> entry = Find(job_folder, sequence);
  auto metrics = entry->metrics.Read(query);
  Account(*entry);
  return metrics;
}

uint64_t MetricsOfJobs::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const auto& entry : latest_) bytes += entry->bytes;
  return bytes;
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
    latest_.push_front(std::make_shared<Entry>(job_folder, sequence, most_bytes_));
  }
  if (latest_.size() > kMostJobs) latest_.pop_back();
  return latest_.front();
}

void MetricsOfJobs::Account(Entry& entry) {
  const uint64_t taken = entry.metrics.bytes();
  absl::MutexLock lock(&mutex_);
  entry.bytes = taken;
  uint64_t all = 0;
  for (const auto& one : latest_) all += one->bytes;
  while (all > most_bytes_ && latest_.size() > 1) {
    all -= latest_.back()->bytes;
    latest_.pop_back();
  }
}

}  // namespace tutti::service
