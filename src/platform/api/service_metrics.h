// AddServiceMetrics says how the service itself does: its process, its calls, its store, its disk.
#pragma once

#include "base/metrics/prometheus_text.h"
#include "platform/api/metrics.h"

namespace tutti::api {

void AddServiceMetrics(base::PrometheusText& text, const Metrics& seen);

}  // namespace tutti::api
