// AddServiceMetrics says how the service itself does: its process, its calls, its store, its disk.
#pragma once

#include "platform/api/metrics.h"
#include "platform/api/prometheus/prometheus_text.h"

namespace tutti::api {

void AddServiceMetrics(PrometheusText& text, const Metrics& seen);

}  // namespace tutti::api
