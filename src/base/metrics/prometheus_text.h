// PrometheusText writes metrics as Prometheus reads them: the text format, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats), or OpenMetrics 1.0, which differs from it
// in what a counter's metadata is named after, in escapes and at the end. Names, labels and values
// are the same in both, so that it is one series whichever a monitor asks for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/metrics/histogram.h"

namespace tutti::base {

class PrometheusText {
 public:
  enum class Format { kText, kOpenMetrics };
  enum class Type { kGauge, kCounter, kHistogram };
  using Labels = std::vector<std::pair<absl::string_view, absl::string_view>>;

  explicit PrometheusText(Format format) : format_(format) {}

  // Begins a metric, whose samples follow. A counter's name ends with "_total".
  void Begin(absl::string_view name, Type type, absl::string_view help);
  // Adds a sample of the metric that was begun last.
  void Add(double value, const Labels& labels = {});
  // Adds those of a histogram, in seconds.
  void Add(const base::Histogram& times, const Labels& labels = {});
  // Begins a metric that has one sample, and adds it.
  void AddOne(absl::string_view name, Type type, absl::string_view help, double value);
  // Ends the text, and returns it.
  std::string Finish() &&;

 private:
  void AddSample(absl::string_view suffix, double value, const Labels& labels,
                 absl::string_view bound = {});

  const Format format_;
  std::string name_, text_;
};

// Returns the media type of a text of that format.
absl::string_view MediaType(PrometheusText::Format format);
// Returns the one that a request's header Accept likes best: the text format, unless it names
// OpenMetrics and likes nothing that is text better.
PrometheusText::Format FormatFor(absl::string_view accept);

}  // namespace tutti::base
