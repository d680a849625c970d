// MetricsText says for Prometheus how a service and its jobs do (docs/monitoring/prometheus.md has
// the table of its metrics). How long it is grows with the computes, and with the jobs and nodes
// that it was given; ended jobs have no part in it.
#pragma once

#include <string>

#include "base/metrics/prometheus_text.h"
#include "base/process/process_use.h"
#include "platform/api/routing/call_counters.h"
#include "platform/service/monitoring/monitoring.h"

namespace tutti::api {

struct Metrics {
  service::Monitoring service;
  base::ProcessUse process;
  HttpUse http;
};

std::string MetricsText(const Metrics& seen, base::PrometheusText::Format format);

}  // namespace tutti::api
