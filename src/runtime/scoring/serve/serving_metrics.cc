#include "runtime/scoring/serve/serving_metrics.h"

#include "base/process/process_use.h"

namespace tutti::scoring {
namespace {

using Type = base::PrometheusText::Type;

constexpr absl::string_view kOutcomeNames[kOutcomes] = {"answered", "wrong_input", "too_late",
                                                        "client_gone", "failed"};

absl::Span<const absl::Duration> Times() {
  static const auto* const bounds = [] {
    auto* all = new std::vector<absl::Duration>;
    for (const double ms :
         {0.5, 1., 2., 4., 8., 15., 30., 60., 125., 250., 500., 1000., 2000., 4000., 8000.}) {
      all->push_back(absl::Milliseconds(ms));
    }
    return all;
  }();
  return *bounds;
}

absl::Span<const absl::Duration> Sizes() {
  static const auto* const bounds = new std::vector<absl::Duration>{
      absl::Seconds(1),  absl::Seconds(2),  absl::Seconds(4), absl::Seconds(8),
      absl::Seconds(16), absl::Seconds(32), absl::Seconds(64)};
  return *bounds;
}

void AddProcess(base::PrometheusText& text) {
  const base::ProcessUse process = base::ReadProcessUse();
  text.AddOne("process_cpu_seconds_total", Type::kCounter, "Processor time in seconds.",
              process.processor_seconds);
  text.AddOne("process_resident_memory_bytes", Type::kGauge, "Memory in use.",
              static_cast<double>(process.resident_bytes));
  text.AddOne("process_open_fds", Type::kGauge, "Open files and connections.",
              static_cast<double>(process.open_files));
}

}  // namespace

ModelCounters::ModelCounters()
    : total_(Times()), queued_(Times()), batch_(Times()), sizes_(Sizes()) {}

void ModelCounters::AddRequest(Outcome outcome, size_t images, const RequestTimes& times) {
  absl::MutexLock lock(&mutex_);
  ++requests_[static_cast<size_t>(outcome)];
  if (outcome != Outcome::kAnswered) return;
  images_ += static_cast<int64_t>(images);
  total_.Add(times.total);
  queued_.Add(times.queued);
}

void ModelCounters::AddBatch(size_t images, absl::Duration time) {
  absl::MutexLock lock(&mutex_);
  batch_.Add(time);
  sizes_.Add(absl::Seconds(images));
}

std::string MetricsText(std::span<const ModelMetrics> models, const std::map<int, int64_t>& answers,
                        int64_t lost_lines, base::PrometheusText::Format format) {
  base::PrometheusText text(format);
  text.Begin("tutti_score_answers_total", Type::kCounter, "Answers of all paths, by HTTP status.");
  for (const auto& [status, count] : answers) {
    text.Add(static_cast<double>(count), {{"status", std::to_string(status)}});
  }
  const auto of_each = [&](const char* name, Type type, const char* help, const auto& add) {
    text.Begin(name, type, help);
    for (const ModelMetrics& model : models) {
      absl::MutexLock lock(&model.counters->mutex_);
      add(model, base::PrometheusText::Labels{{"model", model.name}, {"version", model.version}});
    }
  };
  of_each("tutti_score_requests_total", Type::kCounter, "Requests for a model, by their end.",
          [&](const ModelMetrics& m, auto labels) ABSL_NO_THREAD_SAFETY_ANALYSIS {
            labels.emplace_back("outcome", "");
            for (size_t i = 0; i < kOutcomes; ++i) {
              labels.back().second = kOutcomeNames[i];
              text.Add(static_cast<double>(m.counters->requests_[i]), labels);
            }
          });
  of_each("tutti_score_images_total", Type::kCounter, "Images that were answered.",
          [&](const ModelMetrics& m, const auto& labels) ABSL_NO_THREAD_SAFETY_ANALYSIS {
            text.Add(static_cast<double>(m.counters->images_), labels);
          });
  of_each("tutti_score_images_waiting", Type::kGauge,
          "Images that wait for a model or are being computed.",
          [&](const ModelMetrics& m, const auto& labels) {
            text.Add(static_cast<double>(m.waiting), labels);
          });
  of_each("tutti_score_request_seconds", Type::kHistogram,
          "Time from a request's body to its answer.",
          [&](const ModelMetrics& m, const auto& labels)
              ABSL_NO_THREAD_SAFETY_ANALYSIS { text.Add(m.counters->total_, labels); });
  of_each("tutti_score_queue_seconds", Type::kHistogram,
          "Time until a request's first image is computed, decoding included.",
          [&](const ModelMetrics& m, const auto& labels)
              ABSL_NO_THREAD_SAFETY_ANALYSIS { text.Add(m.counters->queued_, labels); });
  of_each("tutti_score_batch_seconds", Type::kHistogram, "Time that a batch is computed.",
          [&](const ModelMetrics& m, const auto& labels)
              ABSL_NO_THREAD_SAFETY_ANALYSIS { text.Add(m.counters->batch_, labels); });
  of_each("tutti_score_batch_images", Type::kHistogram, "Images in a batch.",
          [&](const ModelMetrics& m, const auto& labels)
              ABSL_NO_THREAD_SAFETY_ANALYSIS { text.Add(m.counters->sizes_, labels); });
  text.AddOne("tutti_score_access_log_lost_lines_total", Type::kCounter,
              "Lines that the access log's disk did not take.", static_cast<double>(lost_lines));
  AddProcess(text);
  return std::move(text).Finish();
}

}  // namespace tutti::scoring
