// Any bytes as a metrics file and as a file of MLflow's: numbers, and no crash.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "platform/flow/metric_reports.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const double value : tutti::flow::ReportsInMetricsFile(text, "loss").values) {
    if (!std::isfinite(value)) std::abort();
  }
  for (const double value : tutti::flow::ReportsInMlflowFile(text)) {
    if (!std::isfinite(value)) std::abort();
  }
  return 0;
}
